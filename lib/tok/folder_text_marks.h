/// What transformers' tokenizer of a folder puts around a text of its own accord.
#pragma once

#include <string>
#include <vector>

namespace trainwright {

/// Tokens that the tokenizer itself puts around each text, as it writes them.
struct TextMarks {
  std::vector<std::string> begin, end;
};

/// Where there is a tokenizer.json, transformers 5 goes by its post-processor, else by tokenizer_config.json.
/// \throws Error{kBadInput, kIo}
TextMarks ReadTextMarks(const std::string& folder);

/// Likewise in transformers 4, whose tokenizers of the Llama, Gemma and Cohere classes go by
/// tokenizer_config.json also where there is a tokenizer.json.
/// \throws Error{kBadInput, kIo}
TextMarks ReadTextMarksOfTransformers4(const std::string& folder);

}  // namespace trainwright
