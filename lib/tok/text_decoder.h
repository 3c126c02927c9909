/// From the tokens of a tokenizer.json file to text, by its decoders, one after the other.
///
/// Immutable after construction and thread-safe. Linear in the text.
/// \source the decoders of Hugging Face tokenizers, v0.23
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/tok/text_pipeline.h"

namespace trainwright {

class TextDecoder {
 public:
  explicit TextDecoder(const TextPipeline& pipeline);

  /// \param tokens valid UTF-8, each
  std::string Decode(std::vector<std::string> tokens) const;
  /// The byte that a token is in a run of such, which is decoded as a whole: "<0xE2>".
  std::optional<char> ByteOf(std::string_view token) const;

 private:
  static void Apply(const DecoderStep& step, std::vector<std::string>* tokens);

  bool has_decoder_;  // else tokens are joined by spaces
  std::vector<DecoderStep> steps_;
  bool falls_back_to_bytes_;
};

}  // namespace trainwright
