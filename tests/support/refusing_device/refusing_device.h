/// A device for tests that no host may look into: torch's PrivateUse1, with the memory of this process.
///
/// A tensor's address lies where nothing can be read or written, so that a host access of it ends the process
/// at its line with a report that names the tensor. Kernels are the CPU's, on tensors that show the same
/// memory at another address (host_view.h); attention, which torch has for CUDA only, is attention.cc, and
/// the project's operators run the CUDA kernels, emulated (project_operators.cc). Fresh memory is full of
/// NaN, and every allocation ends before a page that kernels cannot touch either.
///
/// Work is done when it is queued, but the host learns of it as of a GPU's: a copy to pinned memory that
/// nobody waited for shows there only after a wait, and pinned memory that is changed before the copy out of
/// it was waited for is a violation. What makes the host wait is counted by its cause.
///
/// Linking it registers it. What it counts is safe to read while no kernel runs.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace trainwright::test {

inline const c10::Device kRefusingDevice(c10::DeviceType::PrivateUse1, 0);

struct DeviceCounts {
  int64_t kernels = 0;                ///< that ran, copies on the device with them
  int64_t graphs = 0;                 ///< that were launched; their kernels do not count
  int64_t copies = 0;                 ///< between pinned memory and the device, for which nobody waited
  int64_t bytes = 0, peak_bytes = 0;  ///< of tensors now, and at most at a time
  /// How often the host waited, by cause: "a copy to the host", "item", "a stream", "aten::nonzero".
  std::map<std::string, int64_t> waits;
  /// Pinned memory that the host changed while a copy out of it was not waited for.
  std::vector<std::string> violations;
};

/// Since the process began or the last ResetDeviceCounts.
DeviceCounts CountsOfDevice();
/// All but `bytes`.
void ResetDeviceCounts();

/// While it lives the project's operators are the CPU's kernels instead of those of the CUDA sources, which
/// the host emulates: many times as quick. They take no fp16.
class CpuKernels {
 public:
  CpuKernels();
  ~CpuKernels();
  CpuKernels(const CpuKernels&) = delete;
  CpuKernels& operator=(const CpuKernels&) = delete;
};

/// While it lives the host may not wait for the device.
class WaitsRefused {
 public:
  WaitsRefused();
  ~WaitsRefused();
  WaitsRefused(const WaitsRefused&) = delete;
  WaitsRefused& operator=(const WaitsRefused&) = delete;
};

}  // namespace trainwright::test
