#include "lib/device/device.h"

#include "lib/base/error.h"

namespace trainwright {

c10::Device ChooseDevice(const std::string& name) {
  if (name == "auto" || name == "cpu") return c10::Device(c10::DeviceType::CPU);
  if (name == "cuda" || name.rfind("cuda:", 0) == 0) {
    throw Error(ErrorCode::kDevice, "--device " + name, "this build computes on the CPU only", "",
                "use --device cpu, or --device auto");
  }
  throw Error(ErrorCode::kUsage, "--device", "unknown device '" + name + "'", "", "use auto, cpu or cuda");
}

}  // namespace trainwright
