/// Averaging of the weights of several checkpoints: `train --average`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/model/model_family.h"

namespace trainwright {

/// Writes the mean of the weights of models as a plain model folder of Hugging Face, fp32, with the
/// tokenizer's files of the first. Sums are in fp64 and each weight counts alike. In memory are one model and
/// those sums.
/// \source Izmailov et al. 2018, arXiv:1803.05407; Wortsman et al. 2022, arXiv:2203.05482
/// \param folders model folders, checkpoints or runs, whose newest checkpoint is meant: two at least, of one
///     shape
/// \param out a folder that does not exist yet or is empty
/// \returns {"average", "models"}
/// \throws Error{kUsage, kBadInput, kIo}, on adapters too; Error{kNonFinite} on weights that are not finite
nlohmann::ordered_json AverageModels(const ModelFamilies& families, const std::vector<std::string>& folders,
                                     const std::string& out);

}  // namespace trainwright
