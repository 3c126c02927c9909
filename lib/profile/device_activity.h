/// What a device did and when: kernels, copies and fills, for profiles.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/profile_part.h"

namespace trainwright {

enum class ActivityKind : uint8_t { kKernel, kCopyToDevice, kCopyToHost, kCopyOnDevice, kFill };

/// A kernel, copy or fill that has ended.
struct DeviceActivity {
  ActivityKind kind = ActivityKind::kKernel;
  std::string name;  ///< of a kernel, as a reader of C++ writes it
  int32_t device = 0;
  int64_t stream = 0;
  int64_t start_ns = 0, end_ns = 0;  ///< of the clock of HostTimeline
  int64_t bytes = 0;                 ///< copied or filled
};

/// "memcpy HtoD" and so on; of a kernel its name.
std::string ActivityName(const DeviceActivity& activity);

/// The part of a step that an activity belongs to. Kernels are recognised by words in their names, those of
/// cuBLAS, cuDNN, CUTLASS, FlashAttention, NCCL, torch and this project; one that no word matches is kOther.
/// Attention takes precedence over GEMMs, which its kernels' names have, too.
ProfilePart PartOfActivity(const DeviceActivity& activity);
ProfilePart PartOfKernel(const std::string& name);

/// Where such records come from: a GPU's by CUPTI (lib/device/gpu_activity.h), a test's from a list.
class ActivitySource {
 public:
  virtual ~ActivitySource() = default;
  /// Waits until the device has done what it was given, then records. Once.
  /// \throws Error{kDevice} where it cannot
  virtual void Start() = 0;
  /// Waits until the device has done what it was given.
  virtual void Wait() = 0;
  /// Ends recording.
  /// \returns what was recorded, in any order
  virtual std::vector<DeviceActivity> Stop() = 0;
};

/// By device, then stream, then beginning; of two that begin together the longer goes first.
void SortActivities(std::vector<DeviceActivity>* activities);

/// Time in which at least one of them was under way.
int64_t BusyNanoseconds(const std::vector<DeviceActivity>& activities);

}  // namespace trainwright
