#include "lib/retrieval/word_cutter.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/tok/text_classes.h"
#include "lib/tok/unicode.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

constexpr std::array<std::string_view, 33> kStopWords = {
    "a",   "an",    "and",  "are",   "as",    "at",   "be",   "but", "by",  "for",  "if",
    "in",  "into",  "is",   "it",    "no",    "not",  "of",   "on",  "or",  "such", "that",
    "the", "their", "then", "there", "these", "they", "this", "to",  "was", "will", "with"};
static_assert(std::is_sorted(kStopWords.begin(), kStopWords.end()));

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
      AppendLowercase(character.code_point, &word);
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
