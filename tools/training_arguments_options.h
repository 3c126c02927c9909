/// What each field of transformers' TrainingArguments is here: data only, torch-free.
///
/// A field becomes an option, with its values; or is accepted because it changes no result here; or is
/// accepted with the values alone that change none, and refused with what serves instead. Fields of
/// version 4 that are no more are among them. Keys of a mapping that a field holds are found by their path.
/// What several fields mean together is in train_joint_options.h. All fields are listed in
/// tests/cli/train/training_arguments.json.
#pragma once

#include "lib/cli/option_synonym.h"

namespace trainwright {

const OptionSynonyms& TrainingArguments();

}  // namespace trainwright
