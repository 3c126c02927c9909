#include "lib/device/device.h"

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/device/cuda_backend.h"

namespace trainwright {

void LoadBackendFor(const std::string& name) {
  if (name != "cpu") ProcessCudaBackend();
}

c10::Device ChooseDevice(const std::string& name) {
  if (name == "cpu") return c10::Device(c10::DeviceType::CPU);
  if (name != "auto" && name != "cuda" && name.rfind("cuda:", 0) != 0) {
    throw Error(ErrorCode::kUsage, "--device", "unknown device '" + name + "'", "", "use auto, cpu or cuda");
  }
  const CudaBackend& backend = ProcessCudaBackend();
  if (backend.plugin == nullptr) {
    if (name != "auto")
      throw Error(ErrorCode::kDevice, "--device " + name, backend.problem, "", backend.hint);
    // A machine without a driver has no GPU to miss.
    const std::string message = "computing on the CPU: " + backend.problem;
    backend.has_driver ? LogInfo(message) : LogDebug(message);
    return c10::Device(c10::DeviceType::CPU);
  }
  return c10::Device(name == "auto" ? "cuda" : name);
}

std::string GpuIdentity(c10::Device device) {
  const CudaPlugin* plugin = device.is_cuda() ? ProcessCudaBackend().plugin : nullptr;
  CudaDeviceInfo info{};
  return plugin != nullptr && plugin->device_info(device.has_index() ? device.index() : 0, &info) ? info.uuid
                                                                                                  : "";
}

}  // namespace trainwright
