/// The device on which tests of several devices run beside the CPU: a GPU, or, in the binary of
/// tests/refusing_device, the device that refuses the host.
#pragma once

#include <c10/core/Device.h>

#include <string>

namespace trainwright::test {

#if defined(TRAINWRIGHT_REFUSING_DEVICE)
inline constexpr c10::DeviceType kTestedDevice = c10::DeviceType::PrivateUse1;
#else
inline constexpr c10::DeviceType kTestedDevice = c10::DeviceType::CUDA;
#endif

/// "cpu", "cuda" or "refusing": of the names of cases.
inline std::string NameOfDevice(c10::DeviceType device) {
  return device == c10::DeviceType::CPU ? "cpu" : device == c10::DeviceType::CUDA ? "cuda" : "refusing";
}

}  // namespace trainwright::test
