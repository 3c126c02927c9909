/// How busy the GPU is that a run computes on, as the driver reports it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "lib/machine/gpu_info.h"

namespace trainwright {

/// Not thread-safe.
class GpuUse {
 public:
  /// The driver averages over up to a second, and asking it takes milliseconds.
  static constexpr double kLeastInterval_s = 1;

  /// \param management null: nothing is reported
  /// \param visible_devices CUDA_VISIBLE_DEVICES; absent: not set
  /// \param ordinal of the GPU, as CUDA counts those that are visible
  GpuUse(std::unique_ptr<GpuManagement> management, std::optional<std::string> visible_devices,
         size_t ordinal);
  /// The share of time, in [0, 1], in which a kernel was running, lately. Asks no more often than every
  /// kLeastInterval_s, and between gives the last answer.
  /// \param time_s of a clock that only rises
  /// \returns nullopt where the driver does not say
  std::optional<double> Read(double time_s);

 private:
  const std::unique_ptr<GpuManagement> management_;
  const std::optional<std::string> visible_devices_;
  const size_t ordinal_;
  std::optional<double> asked_at_s_, use_;
};

}  // namespace trainwright
