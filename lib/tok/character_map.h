/// What a SentencePiece model replaces in a text before it is cut: Unicode normalisation (NFKC), case
/// folding, or rules of the trainer's own. Read from the model's bytes as they are, at whose ends every
/// access is checked once, when the map is made.
///
/// The bytes are the size of a trie in bytes (uint32), the trie, and the replacements, each with a zero byte
/// after it. The trie is a double array of 32-bit units. Of a node: bits 0 to 7 the byte that leads to it,
/// bit 8 whether a rule ends here, bits 9 to 30 its offset, in units of 256 where bit 9 is set; bit 31 is 0.
/// A child by byte b is at the place of its parent XOR the parent's offset XOR b; b = 0 is the leaf of a
/// rule, whose bit 31 is 1 and whose other bits are where the replacement begins.
///
/// Immutable after construction and thread-safe.
/// \source normalizer.cc of google/sentencepiece v0.2.3; Darts-clone
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainwright {

class CharacterMap {
 public:
  /// No rules.
  CharacterMap() = default;

  /// \param serialized precompiled_charsmap of a model
  /// \returns why it is none; empty when it is one, which is then in `map`
  static std::string Read(std::string_view serialized, CharacterMap* map);

  struct Match {
    std::string_view replacement;  ///< valid UTF-8
    size_t size_bytes = 0;         ///< of what is replaced; 0: no rule
  };
  /// The longest rule that `text` begins with, of the 32 shortest.
  Match Find(std::string_view text) const;
  /// The shortest rule that `text` begins with; of a rule with a NUL, none.
  Match FindShortest(std::string_view text) const;

  /// What rules there are that begin with a text.
  enum class Rules { kNone, kLonger, kItself };
  /// \returns kItself when `text`, or what it begins with, is one; kLonger when only longer ones begin with
  /// it
  Rules RulesFrom(std::string_view text) const;

  /// The characters that come next in the rules that begin with a text.
  struct NextCharacters {
    std::vector<bool> below_2_16;  ///< by code point; of the size 2^16
    size_t steps_left = 0;         ///< of how many units may be looked at
  };
  /// Adds those of `text`, with which a rule begins.
  /// \returns false when there are others, ASCII or beyond 2^16, or it takes too many steps
  bool AddNext(std::string_view text, NextCharacters* next) const;

  /// What becomes of an ASCII character that another one follows, or nothing: itself or one other, or -1
  /// where that takes Find.
  int AsciiOf(uint8_t character) const;

 private:
  struct Unit {
    uint32_t bits = 0;
    bool has_leaf() const { return (bits >> 8 & 1) != 0; }
    bool is_leaf() const { return bits >> 31 != 0; }
    uint32_t value() const { return bits & 0x7FFFFFFF; }
    bool bears(uint8_t byte) const { return (bits & 0x800000FF) == byte; }
    uint32_t offset() const { return bits >> 10 << ((bits & 1u << 9) >> 6); }
  };
  bool IsSound() const;
  /// Goes to the children of the child by `byte` of what has children at *at.
  /// \returns false when there is no such child
  bool Step(uint8_t byte, uint32_t* at) const;
  std::string_view ReplacementAt(uint32_t place) const { return replacements_.data() + place; }

  std::vector<Unit> units_;  // empty: no rules
  std::string replacements_;
};

}  // namespace trainwright
