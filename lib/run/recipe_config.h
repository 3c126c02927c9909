/// YAML files of other training programs as options of `train`: `train --config FILE.yaml`.
///
/// A file is known by its keys, in this order: one with a mapping `lora` is the LoRA trainer's; one with a
/// mapping that has the key `_component_` is a torchtune recipe's; one with `base_model` and one of adapter,
/// datasets, pretraining_dataset, micro_batch_size and sequence_len is axolotl's. Any other is train's own.
///
/// Keys that have a counterpart become options. For one that changes no result there is a notice; one that
/// asks for another result, or that is not known, is refused by its name, its path joined by dots, and
/// its line. A key that is null says nothing. What each key means here is in train(1), AXOLOTL FILES,
/// TORCHTUNE FILES and FILES OF THE LORA TRAINER.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/report/option_value.h"

namespace trainwright {

/// \param text of the file
/// \param given of what takes precedence over the file: what it says for the sake of an optimizer or schedule
///     that this overrides does not count
/// \returns nullopt when it is not a file of these programs, also when it is not YAML
/// \throws Error{kUsage} when it is, and holds what train does not do, or YAML that is not read of such
///     files: anchors, aliases, tags, a key that is given twice
std::optional<OptionsOfFile> ReadRecipe(std::string_view text, const std::string& path,
                                        const GivenValue& given = {});

}  // namespace trainwright
