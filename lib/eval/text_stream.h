/// The text of a sample while its tokens come, for those who watch it: whole characters, and nothing that a
/// stop may yet take back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/tok/tokenizer.h"

namespace trainwright {

/// Not thread-safe. A token costs the decoding of the few before it, however many there were.
class TextStream {
 public:
  /// \param tokenizer outlives this
  /// \param prompt ids that the sample goes on from
  /// \param stops texts that end the sample and are not part of it
  TextStream(const Tokenizer* tokenizer, const std::vector<uint32_t>& prompt, std::vector<std::string> stops);

  /// \returns what can be shown besides what was: it ends with a whole character, or is empty
  std::string Take(uint32_t id);
  /// \param text of the whole sample, without its stop
  /// \returns what of it was held back
  std::string Finish(std::string_view text) const;

 private:
  /// How much of the text no stop may take back.
  size_t SafeSize() const;

  const Tokenizer* tokenizer_;
  std::vector<std::string> stops_;
  std::vector<uint32_t> ids_;  // of the prompt's end and the sample, from where pieces are decoded
  size_t begin_ = 0,
         end_ = 0;  // ids whose text is in text_, of which those from begin_ on are decoded with what follows
  std::string text_;  // of the sample so far, in whole characters
  size_t shown_ = 0;  // bytes of it
};

}  // namespace trainwright
