/// The regular expressions that byte-level BPE tokenizers cut texts by, matched as they are written: by
/// backtracking, a character at a time. Slow; what pretokens.h does fast is checked against it.
///
/// Understood are characters, \p{..} of L, of N and of the two lists of o200k, \s, \S, \r, \n, brackets of
/// those, groups (?:..) and (?i:..), negative lookahead (?!..), $ for the end of the text, alternatives, and
/// the quantifiers ?, *, +, {1,3} of characters, possessive (++) or not, and ? of groups. Immutable after
/// construction and thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace trainwright {

class PretokenPattern {
 public:
  /// Stands for a byte that is not UTF-8: no letter, number or space.
  static constexpr uint32_t kBadByte = 0x110000;

  /// \throws Error{kInternal} for what is not understood: expressions are those of pretokens.h
  explicit PretokenPattern(std::string_view expression);

  /// The end of the piece that begins at `begin`: of the match there, or of the characters up to the next
  /// match.
  size_t PieceEnd(std::span<const uint32_t> characters, size_t begin) const;

 private:
  struct Term;
  using Sequence = std::vector<Term>;
  struct Term {
    enum class Kind { kCharacter, kGroup, kNotAhead, kEnd } kind = Kind::kCharacter;
    // Of characters: those in the ranges or of the classes, or all others.
    std::vector<std::pair<uint32_t, uint32_t>> ranges;
    uint8_t classes = 0;
    bool negated = false;
    std::vector<Sequence> alternatives;  // of groups and of what must not follow
    size_t min = 1, max = 1;
    bool possessive = false;  // gives nothing back
  };
  class Parser;
  struct Match;

  std::vector<Sequence> alternatives_;
};

}  // namespace trainwright
