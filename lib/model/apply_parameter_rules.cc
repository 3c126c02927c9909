#include "lib/model/apply_parameter_rules.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr size_t kNamesShown = 8;

/// "a, b, ... and 12 more"
std::string NamesOf(const std::vector<Parameter>& parameters) {
  std::string names;
  size_t trained = 0;
  for (const Parameter& parameter : parameters) {
    if (!parameter.trainable || ++trained > kNamesShown) continue;
    names += (names.empty() ? "" : ", ") + parameter.name;
  }
  return names + (trained > kNamesShown ? " and " + std::to_string(trained - kNamesShown) + " more" : "");
}

/// Visits the trained parameters that a pattern means.
/// \throws Error{kUsage} where there is none
void ForParametersOf(const std::string& pattern, const std::string& flag, FlatParameters* parameters,
                     const std::function<void(size_t index)>& visit) {
  std::vector<size_t> meant;
  const std::vector<Parameter>& all = parameters->all();
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].trainable && MeansParameter(pattern, all[i].name)) meant.push_back(i);
  }
  if (meant.empty()) {
    throw Error(ErrorCode::kUsage, flag, "'" + pattern + "' means no trained parameter of the model", "",
                "its parameters are " + NamesOf(all));
  }
  for (const size_t index : meant) visit(index);
}

}  // namespace

void ApplyParameterRules(const ParameterRules& rules, FlatParameters* parameters) {
  // Rates and decays first: what a pattern of theirs means does not depend on what is frozen.
  std::vector<double> factors(parameters->all().size(), 1.0);
  for (const auto& [pattern, factor] : ParseLrScale(rules.lr_scale)) {
    ForParametersOf(pattern, "--lr-scale", parameters,
                    [&, factor = factor](size_t i) { factors[i] = factor; });
  }
  for (size_t i = 0; i < factors.size(); ++i) (*parameters)[i].rate *= factors[i];
  for (const std::string& pattern : ParsePatterns(rules.no_decay, "--no-decay")) {
    ForParametersOf(pattern, "--no-decay", parameters, [&](size_t i) { (*parameters)[i].decay = false; });
  }
  std::vector<size_t> frozen;
  for (const std::string& pattern : ParsePatterns(rules.freeze, "--freeze")) {
    ForParametersOf(pattern, "--freeze", parameters, [&](size_t i) { frozen.push_back(i); });
  }
  for (const size_t index : frozen) parameters->Freeze(index);
  const std::vector<Parameter>& all = parameters->all();
  if (!frozen.empty() && std::none_of(all.begin(), all.end(), [](const auto& p) { return p.trainable; })) {
    throw Error(ErrorCode::kUsage, "--freeze", "leaves no parameter to train: " + rules.freeze);
  }
}

}  // namespace trainwright
