/// What programs that read a model's folder put around a text of their own accord: transformers' tokenizer
/// its special tokens, sentence-transformers a prompt.
#pragma once

#include <string>
#include <vector>

#include "lib/nn/pooling/pooling.h"

namespace trainwright {

/// Tokens that the tokenizer itself puts around each text, as it writes them. Where there is a
/// tokenizer.json, transformers goes by its post-processor, else by tokenizer_config.json.
struct TextMarks {
  std::vector<std::string> begin, end;
};

/// \throws Error{kBadInput, kIo}
TextMarks ReadTextMarks(const std::string& folder);

/// How sentence-transformers writes a text of the folder: the tokenizer's special tokens, and the prompt that
/// config_sentence_transformers.json has for texts that come with none. What the library pools comes between
/// [ and ]; where that is more than the text, no place is left for an instruction.
/// \param pools_prompt include_prompt of the pooling
/// \returns a ChatTemplate; empty: the text alone
/// \throws Error{kBadInput} on what no template says; Error{kIo}
std::string ReadTextTemplate(const std::string& folder, Pooling pooling, bool pools_prompt);

}  // namespace trainwright
