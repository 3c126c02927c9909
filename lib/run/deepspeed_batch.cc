#include "lib/run/deepspeed_batch.h"

#include <algorithm>
#include <optional>

#include "lib/base/error.h"

namespace trainwright {
namespace {

/// One of the two factors of a rank's samples.
struct Factor {
  std::string key;
  std::optional<int64_t>* setting;
  OptionValue* told = nullptr;  ///< null: the process has no such option
  bool is_said = false;         ///< by somebody whom the file does not go before
  bool is_users = false;        ///< by somebody who goes before the file
};

Factor FactorOf(const std::string& key, std::optional<int64_t>* setting, std::vector<OptionValue>* options) {
  Factor factor = {.key = key, .setting = setting};
  const auto told = std::find_if(options->begin(), options->end(),
                                 [&](const OptionValue& option) { return option.key == key; });
  if (told == options->end()) return factor;
  factor.told = &*told;
  factor.is_said = setting->has_value() && told->origin >= OptionOrigin::kSettingsFile;
  factor.is_users = factor.is_said && told->origin > OptionOrigin::kSettingsFile;
  return factor;
}

void Set(const Factor& factor, int64_t value, const std::string& source) {
  *factor.setting = value;
  if (factor.told == nullptr) return;
  factor.told->value = std::to_string(value);
  factor.told->origin = OptionOrigin::kSettingsFile;
  factor.told->source = source;
}

}  // namespace

std::string TakeTrainBatchSize(const OptionValue& train_batch_size, int64_t ranks,
                               std::vector<OptionValue>* options, TrainSettings* settings) {
  const Factor batch = FactorOf("batch", &settings->batch, options),
               accum = FactorOf("accum", &settings->accum, options);
  const std::string on_ranks = " on " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
  const std::string source = train_batch_size.source + " " + train_batch_size.value + on_ranks;
  std::string product;  // what is said of it
  int64_t samples = std::stoll(train_batch_size.value);
  bool is_even = samples % ranks == 0;
  samples /= ranks;
  for (const Factor& factor : {batch, accum}) {
    if (!factor.is_said) continue;
    const int64_t value = **factor.setting;
    if (value < 1) return "";  // refused where the plan is made
    product += (product.empty() ? "" : " x ") + std::string("--") + factor.key + " " + std::to_string(value);
    is_even = is_even && samples % value == 0;
    samples /= value;
  }
  const bool is_fixed = batch.is_said && accum.is_said;
  if (is_even && samples >= 1 && (!is_fixed || samples == 1)) {
    if (!accum.is_said) Set(accum, batch.is_said ? samples : 1, source);
    if (!batch.is_said) Set(batch, samples, source);
    return "";
  }
  const std::string problem =
      "is " + train_batch_size.value + ", which is not " + (is_fixed ? "" : "a multiple of ") +
      (product.empty() ? "" : product + (ranks > 1 ? " x " : "")) +
      (ranks > 1 || product.empty() ? std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks") : "");
  if (is_fixed && (batch.is_users || accum.is_users)) {
    return train_batch_size.source + " " + problem + ": it is ignored beside what was said elsewhere";
  }
  throw Error(ErrorCode::kUsage, train_batch_size.source, problem, "",
              "change it, or write \"auto\": a step has --batch times --accum samples of each rank");
}

}  // namespace trainwright
