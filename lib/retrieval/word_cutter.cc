#include "lib/retrieval/word_cutter.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/tok/unicode.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

constexpr std::array<std::string_view, 33> kStopWords = {
    "a",   "an",    "and",  "are",   "as",    "at",   "be",   "but", "by",  "for",  "if",
    "in",  "into",  "is",   "it",    "no",    "not",  "of",   "on",  "or",  "such", "that",
    "the", "their", "then", "there", "these", "they", "this", "to",  "was", "will", "with"};
static_assert(std::is_sorted(kStopWords.begin(), kStopWords.end()));

/// Of the scripts that have cases and lie in order; other characters stay as they are.
uint32_t LowerCaseOf(uint32_t c) {
  const auto in = [c](uint32_t first, uint32_t last) { return first <= c && c <= last; };
  if (in('A', 'Z')) return c + 32;
  if (c < 0xC0) return c;
  if (in(0xC0, 0xDE)) return c == 0xD7 ? c : c + 32;  // Latin-1; U+00D7 is the multiplication sign
  // Latin Extended-A: pairs, of which the even one is the capital, or the odd one in two stretches.
  if (in(0x100, 0x137) && c != 0x130) return c | 1;
  if (in(0x14A, 0x177)) return c | 1;
  if (in(0x139, 0x148) || in(0x179, 0x17E)) return c + (c & 1);
  if (c == 0x178) return 0xFF;
  if (in(0x391, 0x3AB) && c != 0x3A2) return c + 32;  // Greek
  if (c == 0x386) return 0x3AC;
  if (in(0x388, 0x38A)) return c + 37;
  if (c == 0x38C) return 0x3CC;
  if (c == 0x38E || c == 0x38F) return c + 63;
  if (in(0x410, 0x42F)) return c + 32;  // Cyrillic
  if (in(0x400, 0x40F)) return c + 80;
  return c;
}

bool IsStopWord(std::string_view word) {
  return std::binary_search(kStopWords.begin(), kStopWords.end(), word);
}

}  // namespace

std::vector<std::string> SearchWords(std::string_view text) {
  const uint8_t* const classes = CharacterClasses();
  std::vector<std::string> words;
  std::string word;
  size_t characters = 0;
  const auto end_word = [&] {
    if (characters >= 2 && !IsStopWord(word)) words.push_back(word);
    word.clear();
    characters = 0;
  };
  while (!text.empty()) {
    const Utf8Character character = DecodeUtf8(text);
    if (character.size_bytes > 0 && (classes[character.code_point] & kWord) != 0) {
      AppendUtf8(LowerCaseOf(character.code_point), &word);
      ++characters;
    } else {
      end_word();
    }
    text.remove_prefix(std::max<size_t>(character.size_bytes, 1));
  }
  end_word();
  return words;
}

}  // namespace trainwright
