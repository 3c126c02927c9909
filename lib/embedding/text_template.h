/// How sentence-transformers writes a text of a model's folder.
#pragma once

#include <string>

#include "lib/nn/pooling/pooling.h"

namespace trainwright {

/// The tokenizer's special tokens, and the prompt that config_sentence_transformers.json has for texts that
/// come with none. What the library pools comes between [ and ]; where that is more than the text, no place
/// is left for an instruction.
/// \param pools_prompt include_prompt of the pooling
/// \returns a ChatTemplate; empty: the text alone
/// \throws Error{kBadInput} on what no template says; Error{kIo}
std::string ReadTextTemplate(const std::string& folder, Pooling pooling, bool pools_prompt);

}  // namespace trainwright
