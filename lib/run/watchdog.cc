#include "lib/run/watchdog.h"

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"
#include "lib/base/units.h"
#include "lib/formats/json_fields.h"

namespace trainwright {

WatchdogMode ParseWatchdogMode(const std::string& name, const std::string& flag) {
  if (name == "off") return WatchdogMode::kOff;
  if (name == "warn") return WatchdogMode::kWarn;
  if (name == "stop") return WatchdogMode::kStop;
  throw Error(ErrorCode::kUsage, flag, "unknown mode '" + name + "'", "", "use off, warn or stop");
}

std::optional<std::string> LossWatchdog::Observe(int64_t step, double loss_nats) {
  std::string problem;
  if (!std::isfinite(loss_nats)) {
    if (++non_finite_in_a_row_ >= kNonFinitePatience) {
      problem = std::to_string(non_finite_in_a_row_) + " losses in a row are not finite";
    }
  } else {
    non_finite_in_a_row_ = 0;
    const bool high = losses_ >= kLeastLosses && loss_nats > ratio_ * average_nats_;
    high_in_a_row_ = high ? high_in_a_row_ + 1 : 0;
    if (high_in_a_row_ >= kPatience) {
      problem = "the loss diverges: " + FormatFixed(loss_nats, 3) + " nats is " +
                FormatFixed(loss_nats / average_nats_, 2) + " times its recent mean of " +
                FormatFixed(average_nats_, 3) + ", " + std::to_string(high_in_a_row_) + " such in a row";
    }
    ++losses_;
    const double window = static_cast<double>(std::min(losses_, kWindow));
    average_nats_ += 2 / (window + 1) * (loss_nats - average_nats_);
  }
  if (problem.empty() || step < silent_until_step_) return {};
  silent_until_step_ = step + kSilenceSteps;
  return problem;
}

nlohmann::json LossWatchdog::state() const {
  return {{"average_nats", average_nats_},
          {"losses", losses_},
          {"high_in_a_row", high_in_a_row_},
          {"non_finite_in_a_row", non_finite_in_a_row_},
          {"silent_until_step", silent_until_step_}};
}

void LossWatchdog::set_state(const nlohmann::json& state, const std::string& path) {
  try {
    ReadField(state, "average_nats", path, &average_nats_);
    ReadField(state, "losses", path, &losses_);
    ReadField(state, "high_in_a_row", path, &high_in_a_row_);
    ReadField(state, "non_finite_in_a_row", path, &non_finite_in_a_row_);
    ReadField(state, "silent_until_step", path, &silent_until_step_);
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kBadInput, path, std::string("bad state of the watchdog: ") + error.what());
  }
  constexpr int64_t kMost = int64_t{1} << 40;  // far above any run, and far from overflow
  const auto counts = [](int64_t count) { return count >= 0 && count <= kMost; };
  if (!counts(losses_) || !counts(high_in_a_row_) || !counts(non_finite_in_a_row_) ||
      silent_until_step_ > 2 * kMost || !std::isfinite(average_nats_)) {
    throw Error(ErrorCode::kBadInput, path, "bad state of the watchdog: a number that no run has");
  }
  if (stops_) silent_until_step_ = 0;
}

std::optional<std::string> DataWaitMonitor::Observe(int64_t step, double step_time_s, double data_wait_s) {
  step_time_s_ += step_time_s;
  data_wait_s_ += data_wait_s;
  if (++steps_ < kWindow) return {};
  const double share = step_time_s_ > 0 ? data_wait_s_ / step_time_s_ : 0;
  steps_ = 0;
  step_time_s_ = data_wait_s_ = 0;
  if (share <= kLargestShare || step < silent_until_step_) return {};
  silent_until_step_ = step + kSilenceSteps;
  return "waiting for data took " + FormatFixed(100 * share, 0) + " % of the time of the last " +
         std::to_string(kWindow) +
         " steps; more --workers or a larger --prefetch may help, or faster storage (--cache-dir)";
}

std::optional<std::string> GpuUseMonitor::Observe(int64_t step, double share) {
  sum_ += share;
  if (++records_ < kWindow) return {};
  const double mean = sum_ / static_cast<double>(kWindow);
  records_ = 0;
  sum_ = 0;
  if (mean >= kLeastShare || step < silent_until_step_) return {};
  silent_until_step_ = step + kSilenceSteps;
  return "the GPU was busy for " + FormatFixed(100 * mean, 0) + " % of the time of the last " +
         std::to_string(kWindow) + " records, and should be for " + FormatFixed(100 * kLeastShare, 0) +
         " %: where data_wait_s is high raise --workers, else a larger --batch may help, or a higher "
         "--log-every";
}

void MemoryMonitor::RaiseBaseline(int64_t resident_bytes) {
  if (baseline_bytes_ > 0) baseline_bytes_ = std::max(baseline_bytes_, resident_bytes);
}

std::optional<std::string> MemoryMonitor::Observe(int64_t step, int64_t steps_here, int64_t resident_bytes) {
  if (steps_here < kBaselineStep) return {};
  if (baseline_bytes_ == 0) {
    baseline_bytes_ = resident_bytes;
    baseline_step_ = step;
    return {};
  }
  const double growth_bytes = static_cast<double>(resident_bytes - baseline_bytes_);
  if (growth_bytes <= static_cast<double>(kLeastGrowthBytes) ||
      growth_bytes <= kLeastGrowth * static_cast<double>(baseline_bytes_) || step < silent_until_step_) {
    return {};
  }
  const std::string message =
      "resident memory grew from " + FormatBytes(static_cast<uint64_t>(baseline_bytes_)) + " at step " +
      std::to_string(baseline_step_) + " to " + FormatBytes(static_cast<uint64_t>(resident_bytes)) +
      "; steps of one size should not take more and more";
  baseline_bytes_ = resident_bytes;
  baseline_step_ = step;
  silent_until_step_ = step + kSilenceSteps;
  return message;
}

}  // namespace trainwright
