/// The text of a sample while its tokens come, for those who watch it: whole characters, and nothing that
/// what comes later may take back. So what was shown is a prefix of the sample's text at any time.
///
/// Held back are, of the ids, what may begin an end of several; of the text, what may begin a stop, the bytes
/// of a character that is not complete, and a run of byte tokens that is decoded as a whole (sample_text.h).
/// The last is bounded: from kMostHeldIds byte tokens in a row on, a text in a script that the vocabulary
/// spells in bytes is shown as its characters come. The cost: where such a run turns out not to be UTF-8, as
/// when a limit cuts its last character, the sample's text has U+FFFD for each of its bytes, and those that
/// were shown as characters remain that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/eval/sample_text.h"
#include "lib/tok/tokenizer.h"

namespace trainwright {

/// Not thread-safe. A sample costs time linear in its length.
class TextStream {
 public:
  static constexpr size_t kMostHeldIds = 256;

  /// \param tokenizer outlives this
  /// \param prompt ids that the sample goes on from
  /// \param stops texts that end the sample and are not part of it
  /// \param sequences of ids that do
  TextStream(const Tokenizer* tokenizer, const std::vector<uint32_t>& prompt, std::vector<std::string> stops,
             std::vector<std::vector<uint32_t>> sequences = {});

  /// \returns what can be shown besides what was: it ends with a whole character, or is empty
  std::string Take(uint32_t id);
  /// \param text of the whole sample, without what ended it
  /// \returns what of it was held back
  std::string Finish(std::string_view text) const;

 private:
  /// How many of the last ids may begin a sequence, or are one.
  size_t HeldIds() const;
  /// Adds an id to the text, and keeps shown_ where it is when what was shown of a run is settled.
  void Add(uint32_t id);
  /// Where in a text whose first `settled` bytes are as they were shown the next is to be shown: what was
  /// shown of an open run may be U+FFFD in it, one a byte.
  size_t Resume(std::string_view text, size_t settled) const;
  /// How much of a text no stop may take back.
  size_t SafeSize(std::string_view text) const;

  std::vector<std::string> stops_;
  std::vector<std::vector<uint32_t>> sequences_;
  SampleText text_;
  std::vector<uint32_t> held_;  // ids that are not in text_
  size_t shown_ = 0;            // bytes of the text
  std::string early_;           // of them what was shown of the open run
};

}  // namespace trainwright
