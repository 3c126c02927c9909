// lib/device/device.h for an engine of tests: `--device cuda` is the refusing device, so that a tool's own
// command lines run on it. Linked before the library, it takes the place of the library's.
//
// The project's operators are the CPU's kernels, for it is the tool that is tested; with
// TRAINWRIGHT_EMULATED_KERNELS in the environment they are those of the CUDA sources.
#include "lib/device/device.h"

#include <cstdlib>

#include "tests/support/refusing_device/recorded_work.h"
#include "tests/support/refusing_device/refusing_device.h"

namespace trainwright {

void LoadBackendFor(const std::string&) {
  if (std::getenv("TRAINWRIGHT_EMULATED_KERNELS") == nullptr) static const test::CpuKernels quick;
}

c10::Device ChooseDevice(const std::string& name) {
  return name == "cpu" ? c10::Device(c10::DeviceType::CPU) : test::kRefusingDevice;
}

std::string GpuIdentity(c10::Device device) {
  return device.is_cpu() ? "" : "refusing device";
}

}  // namespace trainwright

/// Found as that of the CUDA plugin is: lib/device/device_graph.h.
extern "C" [[gnu::visibility("default")]] const trainwright::DeviceGraphPlugin* trainwright_device_graph() {
  return trainwright::test::DeviceGraphs();
}
