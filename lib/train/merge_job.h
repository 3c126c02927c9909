/// Merging of an adapter into its base: `train --merge`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lib/model/model_family.h"

namespace trainwright {

/// Writes W + s B A as a plain model folder of Hugging Face, fp32, with the base's tokenizer files. Of an
/// adapter that was trained on quantised weights, too, the base's own weights are taken.
/// \param base a model folder, checkpoint or run; empty: the folder that adapter_config.json names
/// \param out a folder that does not exist yet or is empty
/// \param allow_other_base than the one that the adapter was trained on
/// \returns {"merged", "base", "adapter"}
/// \throws Error{kUsage, kBadInput, kIo}; Error{kNonFinite} on NaN or infinity in the weights or their sum
nlohmann::ordered_json MergeAdapter(const ModelFamilies& families, const std::string& adapter,
                                    const std::string& base, const std::string& out, bool allow_other_base);

}  // namespace trainwright
