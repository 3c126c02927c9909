/// A rate measured again and again: how fast at best, how fast lastingly, and how far the samples lie apart.
#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace trainwright {

struct RateBudget {
  double time_s = 0.5;    ///< for samples; at least kLeastSamples are taken, however long they last
  double warmup_s = 0.1;  ///< before them
  int least_warmup_runs = 1;
  double least_sample_s = 1e-3;  ///< a sample repeats the work until it lasts this long
  int most_samples = 100'000;
};

struct Rate {
  double best = 0, median = 0;   ///< work a second
  std::optional<double> spread;  ///< interquartile range over the median; absent with fewer than 4 samples
  int samples = 0;
  double warmup_s = 0, time_s = 0;  ///< spent
};

inline constexpr int kLeastSamples = 4;

struct RateWork {
  double amount = 0;  ///< of one run: operations, bytes
  std::function<void()> run;
  std::function<void()> finish;  ///< waits for what runs have queued; may be empty
};

/// \param now seconds of a clock; empty: the steady clock
Rate MeasureRate(const RateWork& work, const RateBudget& budget, const std::function<double()>& now = {});

/// The value below which a share of the sorted values lies, interpolated linearly between neighbours.
/// \pre not empty, ascending
double Quantile(const std::vector<double>& sorted, double share);

}  // namespace trainwright
