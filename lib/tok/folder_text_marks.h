/// What transformers' tokenizer of a folder puts around a text of its own accord.
#pragma once

#include <string>
#include <vector>

namespace trainwright {

/// Tokens that the tokenizer itself puts around each text, as it writes them. Where there is a
/// tokenizer.json, transformers goes by its post-processor, else by tokenizer_config.json.
struct TextMarks {
  std::vector<std::string> begin, end;
};

/// \throws Error{kBadInput, kIo}
TextMarks ReadTextMarks(const std::string& folder);

}  // namespace trainwright
