#include "lib/machine/repeated_rate.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "lib/base/error.h"

namespace trainwright {
namespace {

double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

double Quantile(const std::vector<double>& sorted, double share) {
  TRAINWRIGHT_CHECK(!sorted.empty());
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Rate MeasureRate(const RateWork& work, const RateBudget& budget, const std::function<double()>& clock) {
  const std::function<double()> now = clock ? clock : SteadySeconds;
  const auto finish = [&] {
    if (work.finish) work.finish();
  };
  Rate rate;
  double start = now();
  int runs = 0;
  do {
    work.run();
    finish();
    ++runs;
    rate.warmup_s = now() - start;
  } while (runs < budget.least_warmup_runs || rate.warmup_s < budget.warmup_s);
  const int runs_a_sample =
      std::max(1, static_cast<int>(std::ceil(budget.least_sample_s * runs / std::max(rate.warmup_s, 1e-9))));

  std::vector<double> rates;
  start = now();
  double begin = start;
  const auto wanted = [&] {
    const int taken = static_cast<int>(rates.size());
    return taken < budget.most_samples && (taken < kLeastSamples || begin - start < budget.time_s);
  };
  while (wanted()) {
    for (int i = 0; i < runs_a_sample; ++i) work.run();
    finish();
    const double end = now();
    rates.push_back(work.amount * runs_a_sample / std::max(end - begin, 1e-9));
    begin = end;
  }
  rate.time_s = begin - start;
  std::sort(rates.begin(), rates.end());
  rate.samples = static_cast<int>(rates.size());
  rate.best = rates.back();
  rate.median = Quantile(rates, 0.5);
  if (rates.size() >= 4) rate.spread = (Quantile(rates, 0.75) - Quantile(rates, 0.25)) / rate.median;
  return rate;
}

}  // namespace trainwright
