/// What transformers' TrainingArguments (training_arguments_options.h), nanoGPT and their like
/// call the options of `train`: data only,
/// torch-free.
#pragma once

#include "lib/cli/option_synonym.h"

namespace trainwright {

/// As ToolInfo::synonyms.
const OptionSynonyms& SynonymsOfTrain();

}  // namespace trainwright
