/// Finds added tokens in text: the leftmost, of those the longest, then on after it.
///
/// Immutable after construction and thread-safe.
/// \source AddedVocabulary::find_matches of Hugging Face tokenizers, its order and its overlaps included
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/tok/tokenizer_json.h"

namespace trainwright {

/// Where white space ends. Each run of it is read once, however many places in it are asked for, so that
/// tokens that are white space themselves and strip more of it take linear time.
class WhiteSpaceRuns {
 public:
  /// \param text outlives this
  explicit WhiteSpaceRuns(std::string_view text) : text_(text) {}
  /// The end of the white space at `begin`; `begin` where there is none.
  size_t EndOf(size_t begin);
  /// Characters of white space that were read so far.
  size_t characters_read() const { return characters_read_; }

 private:
  std::string_view text_;
  size_t begin_ = 0, end_ = 0;  // the run that was read last
  size_t characters_read_ = 0;
};

class AddedTokenMatcher {
 public:
  /// \param tokens those whose `normalized` is `normalized` are looked for; they outlive the matcher
  AddedTokenMatcher(const std::vector<AddedToken>& tokens, bool normalized);

  /// A part of a text: an added token with what it strips, or text between.
  struct Part {
    size_t begin = 0, end = 0;
    const AddedToken* token = nullptr;
  };
  /// Calls `visit(part)` for the parts of `text` from left to right; not for empty text between.
  template <typename Visit>
  void Cut(std::string_view text, Visit&& visit) const {
    size_t done = 0;
    WhiteSpaceRuns runs(text);
    for (size_t at = 0; const AddedToken* token = Find(text, &at); at += token->pattern.size()) {
      size_t begin = at, end = at + token->pattern.size();
      if (token->single_word && BesideWord(text, begin, end)) continue;
      if (token->left_strip) begin = SpacesBegin(text, done, begin);
      if (token->right_strip) end = runs.EndOf(end);
      if (begin >= end) continue;  // white space that the token before has stripped
      if (done < begin) visit(Part{done, begin, nullptr});
      visit(Part{begin, end, token});
      done = end;
    }
    if (done < text.size()) visit(Part{done, text.size(), nullptr});
  }

 private:
  /// The first token at or after *at, which becomes its place; nullptr when there is none.
  const AddedToken* Find(std::string_view text, size_t* at) const;
  const AddedToken* LongestAt(std::string_view text, size_t at) const;
  static bool BesideWord(std::string_view text, size_t begin, size_t end);
  /// The beginning of the white space before `end`, not before `done`.
  static size_t SpacesBegin(std::string_view text, size_t done, size_t end);

  std::vector<const AddedToken*> tokens_;  // by first byte, then the longest first
  std::array<uint32_t, 257> first_{};      // where in tokens_ those with a first byte begin
  std::bitset<65536> beginnings_;          // first byte | second << 8 of what may begin a token
  int only_first_byte_ = -1;               // when all begin alike
};

}  // namespace trainwright
