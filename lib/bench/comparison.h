/// What a measurement says about two variants: how much, how sure, and in one word.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/bench/measurement.h"
#include "lib/bench/statistics.h"

namespace trainwright {

enum class Verdict { kFaster, kSlower, kSame, kUndecided };
/// "faster", "slower", "same", "undecided"; for metrics that are no times "better" and "worse".
std::string VerdictName(Verdict verdict, const std::string& metric);

/// Whether more of a metric is better, whatever its mark: rates (fields that end in _per_s), mfu, gpu_util.
bool HigherIsBetter(const std::string& metric);

/// A ratio as a change: 1.021 is "+2.1 %".
std::string ChangeText(double ratio);

struct ComparisonOptions {
  double same_within = 0.01;  ///< a difference of this share does not matter
  uint64_t seed = 1;
};

/// Of "after" against "before" in one metric. Logarithms of ratios; positive means a larger value after.
struct Comparison {
  std::string metric;
  double before = 0, after = 0;  ///< medians over all runs
  MedianEstimate log_ratio;      ///< over rounds
  MedianEstimate control;        ///< the same of the control against "before": what no change looks like
  double noise_floor = 0;        ///< the larger absolute bound of the control's interval
  double p_adjusted = 1;         ///< by Holm over the metric's comparisons made together; p_value when alone
  std::vector<size_t> outlier_rounds;
  std::optional<MedianEstimate> without_outliers;
  Verdict verdict = Verdict::kUndecided;
  double ratio() const;
  double ratio_low() const;
  double ratio_high() const;
};

/// nullopt where a run lacks the metric, or it is not positive in all.
///
/// same: the whole interval lies within same_within. faster, slower: the interval excludes 0 and the median
/// lies beyond the noise floor; else undecided. That the floor is a bound of the control's own 95 % interval
/// makes a false "different" rarer than 5 % (simulated: at most 2 % in normal, heavy-tailed, skewed and
/// correlated noise from 8 rounds on; of fewer both intervals are Student's, and reach further).
std::optional<Comparison> Compare(const Measurement& measurement, size_t before, size_t after,
                                  const std::string& metric, const ComparisonOptions& options);

/// Adjusts by Holm and takes "different" back where the adjusted p-value is not below 0.05.
/// \param comparisons in one metric
void CorrectTogether(std::vector<Comparison*> comparisons);

/// What a reader should know before believing the numbers: load, drift, correlation, outliers, outputs.
std::vector<std::string> WarningsOf(const Measurement& measurement, const Comparison& comparison,
                                    double load_at_start, int cpus);

nlohmann::ordered_json ToJson(const Comparison& comparison);

}  // namespace trainwright
