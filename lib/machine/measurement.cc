#include "lib/machine/measurement.h"

#include "lib/base/units.h"
#include "lib/machine/json_optional.h"

namespace trainwright {
namespace {

nlohmann::ordered_json EncodeStrain(const std::optional<GpuStrain>& strain) {
  if (!strain) return nullptr;
  return {{"sm_clock_mhz", OrNull(strain->sm_clock_mhz)}, {"power_draw_w", OrNull(strain->power_draw_w)}};
}

}  // namespace

bool IsSteady(const Rate& rate) {
  return rate.spread && *rate.spread <= kLargestSpread;
}

nlohmann::ordered_json EncodeMeasurement(const Measurement& measurement) {
  const Rate& rate = measurement.rate;
  return {{"what", measurement.what},
          {"device", measurement.device},
          {"method", measurement.method},
          {"dtype", OrNull(measurement.dtype)},
          {"size", measurement.size},
          {"threads", OrNull(measurement.threads)},
          {"unit", measurement.unit},
          {"best", rate.best},
          {"median", rate.median},
          {"spread", OrNull(rate.spread)},
          {"samples", rate.samples},
          {"warmup_s", rate.warmup_s},
          {"time_s", rate.time_s},
          {"fraction_of_spec", OrNull(measurement.fraction_of_spec)},
          {"spec", OrNull(measurement.spec)},
          {"before", EncodeStrain(measurement.before)},
          {"after", EncodeStrain(measurement.after)}};
}

std::string FormatRate(double rate, const std::string& unit) {
  const bool operations = unit == "flop/s";
  const std::string name = operations ? "FLOP/s" : "B/s";
  if (rate >= 1e12) return FormatFixed(rate / 1e12, 2) + " T" + name;
  if (rate < 1e9) return FormatFixed(rate / 1e6, rate >= 1e8 ? 0 : 2) + " M" + name;
  return FormatFixed(rate / 1e9, rate >= 1e11 ? 0 : 2) + " G" + name;
}

}  // namespace trainwright
