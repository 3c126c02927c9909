#include "lib/device/device.h"

#include <cstring>
#include <fstream>
#include <string>

#include "lib/base/error.h"

namespace trainwright {
namespace {

/// A field of /proc/self/status that is given in kB.
int64_t ProcessStatusBytes(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field, 0) == 0) return std::stoll(line.substr(std::strlen(field))) * 1024;
  }
  return 0;
}

}  // namespace

c10::Device ChooseDevice(const std::string& name) {
  if (name == "auto" || name == "cpu") return c10::Device(c10::DeviceType::CPU);
  if (name == "cuda" || name.rfind("cuda:", 0) == 0) {
    throw Error(ErrorCode::kDevice, "--device " + name, "this build computes on the CPU only", "",
                "use --device cpu, or --device auto");
  }
  throw Error(ErrorCode::kUsage, "--device", "unknown device '" + name + "'", "", "use auto, cpu or cuda");
}

int64_t PeakResidentBytes() {
  return ProcessStatusBytes("VmHWM:");
}

int64_t ResidentBytes() {
  return ProcessStatusBytes("VmRSS:");
}

}  // namespace trainwright
