// lib/device/device_memory.h for an engine of tests, in the place of the library's, as device.cc: the
// refusing device has as many bytes in all as TRAINWRIGHT_REFUSING_DEVICE_BYTES of the environment says.
#include "lib/device/device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <chrono>
#include <cstdlib>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"

namespace trainwright {

int64_t FreeDeviceBytes(c10::Device) {
  return 0;
}

int64_t WholeDeviceBytes(c10::Device device) {
  const char* const bytes = std::getenv("TRAINWRIGHT_REFUSING_DEVICE_BYTES");
  return device.is_cpu() || bytes == nullptr ? 0 : std::atoll(bytes);
}

int64_t CapDeviceMemory(c10::Device, double) {
  throw Error(ErrorCode::kDevice, "device memory", "there is no GPU");
}

int64_t PeakDeviceBytes(c10::Device) {
  return 0;
}

std::optional<double> EmptyDeviceCache(c10::Device device) {
  if (device.is_cpu()) return std::nullopt;
  const auto start = std::chrono::steady_clock::now();
  c10::getDeviceAllocator(device.type())->emptyCache();
  return SecondsSince(start);
}

}  // namespace trainwright
