#include "lib/model/model_family.h"

#include <algorithm>
#include <string>
#include <utility>

#include "lib/base/error.h"
#include "lib/device/accelerator.h"

namespace trainwright {
namespace {

std::vector<const FamilyDescription*> DescriptionsOf(const std::vector<ModelFamily>& families) {
  std::vector<const FamilyDescription*> descriptions;
  for (const ModelFamily& family : families) {
    TRAINWRIGHT_CHECK(family.description != nullptr && family.make != nullptr);
    descriptions.push_back(family.description);
  }
  return descriptions;
}

}  // namespace

ModelFamilies::ModelFamilies(std::vector<ModelFamily> families)
    : families_(std::move(families)), descriptions_(DescriptionsOf(families_)) {}

const ModelFamily& ModelFamilies::Of(const ModelConfig& config) const {
  const auto found = std::find_if(families_.begin(), families_.end(), [&](const ModelFamily& family) {
    return family.description == config.family;
  });
  if (found != families_.end()) return *found;
  throw Error(ErrorCode::kUsage, "model config",
              std::string("the model type '") + FamilyOf(config).model_type() + "' is not known", "",
              "this build computes the model types " + descriptions_.Names());
}

std::unique_ptr<LanguageModel> MakeModel(const ModelFamilies& families, const ModelConfig& config,
                                         Precision precision, at::Device device, std::optional<uint64_t> seed,
                                         const ComputeKinds& kinds, const FineTuning& tuning) {
  if (IsAccelerator(device)) RequireGpuSupport(config);
  TRAINWRIGHT_CHECK(kinds.residual == Precision::kFp32 || FamilyOf(config).has_bf16_stream());
  const ModelFamily& family = families.Of(config);
  return std::make_unique<LanguageModel>(
      family.make(config, ChooseNumerics(precision, device, kinds), device, seed, tuning), family.code);
}

}  // namespace trainwright
