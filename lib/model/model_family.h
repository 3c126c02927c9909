/// Model families with what computes them, and the making of a model. lib/spec/family.h describes a family.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lib/model/language_model.h"
#include "lib/spec/family_list.h"

namespace trainwright {

struct ModelFamily {
  const FamilyDescription* description = nullptr;  ///< outlives all configs
  /// Makes the body of a model of one of the description's configs: as MakeModel, with the storage chosen.
  std::function<std::shared_ptr<Body>(const ModelConfig& config, const Numerics& numerics, at::Device device,
                                      std::optional<uint64_t> seed, const FineTuning& tuning)>
      make;
  ModelCode code = {};  ///< what config.json's auto_map names; nothing where transformers has the family
};

/// The families of a program: what its main fills, and passes to all that reads config.json or makes a model.
/// Constant: of any thread.
class ModelFamilies {
 public:
  /// \param families no two of one model_type
  explicit ModelFamilies(std::vector<ModelFamily> families);

  const FamilyList& descriptions() const { return descriptions_; }
  /// The family of a config.
  /// \throws Error{kUsage} listing the known ones
  const ModelFamily& Of(const ModelConfig& config) const;

 private:
  std::vector<ModelFamily> families_;
  FamilyList descriptions_;
};

/// Makes a model with initial weights (InitializeWeights in initialize.h), or with zeros when there is no
/// seed, for weights to be loaded over. Adapters start by the same seed.
/// \throws Error{kUsage} on a config it cannot run; Error{kDevice} where its family has no kernels for a GPU
std::unique_ptr<LanguageModel> MakeModel(const ModelFamilies& families, const ModelConfig& config,
                                         Precision precision, at::Device device, std::optional<uint64_t> seed,
                                         const ComputeKinds& kinds = {}, const FineTuning& tuning = {});

}  // namespace trainwright
