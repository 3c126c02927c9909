#include "lib/spec/family_options.h"

#include "lib/base/error.h"

namespace trainwright {
namespace {

Error OfAnotherFamily(const FamilyList& families, const std::string& name) {
  std::string flag, owners;
  for (const FamilyDescription* family : families.all()) {
    const std::vector<OwnOption> own = family->options();
    const OwnOption* option = FindOwnOption(own, name);
    if (option == nullptr) continue;
    flag = option->flag();
    owners += (owners.empty() ? "" : " or ") + std::string(family->model_type());
  }
  if (owners.empty()) return Error(ErrorCode::kUsage, name, "is an option of no family of models");
  return Error(ErrorCode::kUsage, "--" + flag, "has a meaning only with models of the family " + owners, "",
               "leave it out, or choose such a model with --model");
}

/// What was asked, each with a value that it can have.
OwnOptions CheckedOptions(const FamilyList& families, const OwnOptions& asked, const ModelConfig& config) {
  const FamilyDescription& family = FamilyOf(config);
  const std::vector<OwnOption> own = family.options();
  for (const auto& [name, value] : asked) {
    if (FindOwnOption(own, name) == nullptr) throw OfAnotherFamily(families, name);
  }
  const OwnOptions all =
      WithDescribed(asked, own, ErrorCode::kUsage, std::string("the family ") + family.model_type());
  OwnOptions checked;
  for (const auto& [name, value] : asked) checked[name] = all.at(name);
  return checked;
}

}  // namespace

std::string FlagGroupOf(const FamilyDescription& family) {
  return std::string("Model family ") + family.model_type();
}

void ChooseShape(const FamilyList& families, const OwnOptions& asked, ModelConfig* config) {
  const OwnOptions chosen = CheckedOptions(families, asked, *config);
  if (!chosen.empty()) FamilyOf(*config).Apply(chosen, config);
}

void RequireShape(const FamilyList& families, const OwnOptions& asked, const ModelConfig& config,
                  const std::string& whose) {
  const OwnOptions wanted = CheckedOptions(families, asked, config);
  const FamilyDescription& family = FamilyOf(config);
  const std::vector<OwnOption> own = family.options();
  const OwnOptions given = family.OptionsOf(config);
  for (const auto& [name, value] : wanted) {
    const OwnValue& there = given.at(name);
    if (value == there) continue;
    const std::string flag = "--" + FindOwnOption(own, name)->flag();
    throw Error(ErrorCode::kUsage, flag,
                value.ToString() + " differs from " + there.ToString() + " of " + whose, "",
                "leave out " + flag + ", which chooses among the shapes of presets");
  }
}

}  // namespace trainwright
