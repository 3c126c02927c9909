#include "lib/machine/cuda_driver.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdio>

#include "lib/machine/library_function.h"

namespace trainwright {
namespace {

// The part of the driver's binary interface that is used here, as cuda.h declares it.
constexpr int kSuccess = 0;
constexpr int kSmCount = 16, kCapabilityMajor = 75, kCapabilityMinor = 76;  // CUdevice_attribute

struct Functions {
  int (*init)(unsigned int) = nullptr;
  int (*version)(int*) = nullptr;
  int (*error_name)(int, const char**) = nullptr;
  int (*count)(int*) = nullptr;
  int (*device)(int*, int) = nullptr;
  int (*name)(char*, int, int) = nullptr;
  int (*uuid)(unsigned char*, int) = nullptr;
  int (*attribute)(int*, int, int) = nullptr;
  int (*memory)(size_t*, int) = nullptr;
};

std::string UuidText(const unsigned char* bytes) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char digits[4];
    std::snprintf(digits, sizeof(digits), "%02x", bytes[i]);
    text += (i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "") + std::string(digits);
  }
  return text;
}

GpuInfo ReadGpu(const Functions& f, int ordinal) {
  GpuInfo gpu{.index = ordinal};
  int device = 0;
  if (f.device == nullptr || f.device(&device, ordinal) != kSuccess) return gpu;
  char name[256] = "";
  if (f.name != nullptr && f.name(name, sizeof(name), device) == kSuccess) gpu.name = name;
  unsigned char uuid[16];
  if (f.uuid != nullptr && f.uuid(uuid, device) == kSuccess) gpu.uuid = UuidText(uuid);
  if (f.attribute != nullptr) {
    int sm_count = 0;
    Capability found;
    if (f.attribute(&sm_count, kSmCount, device) == kSuccess) gpu.sm_count = sm_count;
    if (f.attribute(&found.major, kCapabilityMajor, device) == kSuccess &&
        f.attribute(&found.minor, kCapabilityMinor, device) == kSuccess) {
      gpu.capability = found;
    }
  }
  if (size_t bytes = 0; f.memory != nullptr && f.memory(&bytes, device) == kSuccess) {
    gpu.memory_total_bytes = static_cast<int64_t>(bytes);
  }
  return gpu;
}

}  // namespace

CudaDriver ReadCudaDriver(const std::string& library) {
  CudaDriver driver;
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) {
    driver.problem = dlerror();
    return driver;
  }
  driver.loads = true;
  Functions f;
  FindFunction(handle, "cuInit", &f.init);
  FindFunction(handle, "cuDriverGetVersion", &f.version);
  FindFunction(handle, "cuGetErrorName", &f.error_name);
  FindFunction(handle, "cuDeviceGetCount", &f.count);
  FindFunction(handle, "cuDeviceGet", &f.device);
  FindFunction(handle, "cuDeviceGetName", &f.name);
  FindFunction(handle, "cuDeviceGetUuid_v2", &f.uuid);
  if (f.uuid == nullptr) FindFunction(handle, "cuDeviceGetUuid", &f.uuid);
  FindFunction(handle, "cuDeviceGetAttribute", &f.attribute);
  FindFunction(handle, "cuDeviceTotalMem_v2", &f.memory);
  // A driver tells its version before it starts.
  if (int version = 0; f.version != nullptr && f.version(&version) == kSuccess) driver.cuda_version = version;
  if (f.init == nullptr || f.count == nullptr) {
    driver.problem = library + " lacks the functions of a CUDA driver";
    return driver;
  }
  int count = 0, status = f.init(0);
  if (status == kSuccess) status = f.count(&count);
  if (status != kSuccess) {
    const char* name = nullptr;
    driver.problem = f.error_name != nullptr && f.error_name(status, &name) == kSuccess && name != nullptr
                         ? name
                         : "CUDA error " + std::to_string(status);
    return driver;
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) driver.gpus.push_back(ReadGpu(f, ordinal));
  return driver;
}

std::optional<int> LoadedCudaRuntime() {
  int (*get)(int*) = nullptr;
  FindFunction(RTLD_DEFAULT, "cudaRuntimeGetVersion", &get);
  int version = 0;
  if (get == nullptr || get(&version) != kSuccess) return std::nullopt;
  return version;
}

std::string CudaVersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace trainwright
