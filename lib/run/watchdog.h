/// Listeners that report when a run goes wrong in a way that no error shows: the loss climbs, the data cannot
/// keep up, a GPU idles, memory grows.
///
/// Pure functions of what they are shown, without clock or files. Each speaks once, then stays silent for
/// kSilenceSteps steps. Not thread-safe.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace trainwright {

inline constexpr int64_t kSilenceSteps = 500;

enum class WatchdogMode { kOff, kWarn, kStop };
/// \throws Error{kUsage} naming `flag`
WatchdogMode ParseWatchdogMode(const std::string& name, const std::string& flag);

/// Divergence: kPatience losses in a row that each exceed `ratio` times the exponential moving average of the
/// losses before it (window kWindow), once kLeastLosses are known; or kNonFinitePatience losses in a row that
/// are not finite. One high loss is a hard sample, several are a trend.
class LossWatchdog {
 public:
  static constexpr int64_t kPatience = 3, kWindow = 50, kLeastLosses = 20, kNonFinitePatience = 10;

  /// \param ratio > 1
  /// \param stops whether a warning ends the process: the next one is warned at once, not after a silence
  explicit LossWatchdog(double ratio, bool stops = false) : ratio_(ratio), stops_(stops) {}
  /// \returns what is wrong, when it is time to say so
  std::optional<std::string> Observe(int64_t step, double loss_nats);
  /// The newest losses in a row that were too high or not finite; those of former processes count.
  int64_t bad_in_a_row() const { return high_in_a_row_ + non_finite_in_a_row_; }

  /// Everything that later answers depend on, for checkpoints.
  nlohmann::json state() const;
  /// \throws Error{kBadInput} naming `path` when a field is missing or of the wrong type
  void set_state(const nlohmann::json& state, const std::string& path);

 private:
  double ratio_;
  bool stops_;
  double average_nats_ = 0;
  int64_t losses_ = 0, high_in_a_row_ = 0, non_finite_in_a_row_ = 0;
  int64_t silent_until_step_ = 0;
};

/// Data that arrives too slowly: waiting takes more than kLargestShare of the time of kWindow steps together.
class DataWaitMonitor {
 public:
  static constexpr int64_t kWindow = 50;
  static constexpr double kLargestShare = 0.1;

  /// \param step_time_s includes data_wait_s
  /// \returns what is wrong, when it is time to say so
  std::optional<std::string> Observe(int64_t step, double step_time_s, double data_wait_s);

 private:
  double step_time_s_ = 0, data_wait_s_ = 0;  // of the window so far
  int64_t steps_ = 0, silent_until_step_ = 0;
};

/// A GPU that idles: the mean of the share of time in which it was running is below kLeastShare over kWindow
/// records.
class GpuUseMonitor {
 public:
  static constexpr int64_t kWindow = 50;
  static constexpr double kLeastShare = 0.85;

  /// \param share in [0, 1]
  /// \returns what is wrong, when it is time to say so
  std::optional<std::string> Observe(int64_t step, double share);

 private:
  double sum_ = 0;  // of the window so far
  int64_t records_ = 0, silent_until_step_ = 0;
};

/// Reports a device that waits.
struct IdleMonitors {
  DataWaitMonitor data_wait;
  GpuUseMonitor gpu_use;
};

/// Memory that grows: a resident size above the baseline, which is that of the process's step kBaselineStep
/// or later while something new (the first evaluation, the first checkpoint) took its share, by more than a
/// quarter and kLeastGrowthBytes. Having spoken, it takes the size as the new baseline.
class MemoryMonitor {
 public:
  static constexpr int64_t kBaselineStep = 3;
  static constexpr int64_t kLeastGrowthBytes = int64_t{128} << 20;
  static constexpr double kLeastGrowth = 0.25;

  /// \param steps_here steps of this process, this one included
  /// \returns what is wrong, when it is time to say so
  std::optional<std::string> Observe(int64_t step, int64_t steps_here, int64_t resident_bytes);
  /// Takes over a size that has a reason of its own.
  void RaiseBaseline(int64_t resident_bytes);

 private:
  int64_t baseline_bytes_ = 0, baseline_step_ = 0, silent_until_step_ = 0;
};

}  // namespace trainwright
