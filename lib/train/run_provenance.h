/// What a checkpoint says about where it comes from.
#pragma once

#include <nlohmann/json.hpp>

#include "lib/train/model_setup.h"
#include "lib/train/resolved_run.h"

namespace trainwright {

/// Model, plan, data, tokenizer, the weights that it began with, and its parent: the same of every checkpoint
/// of a run.
nlohmann::ordered_json ProvenanceOf(const ResolvedRun& run, const ModelSetup& setup);

}  // namespace trainwright
