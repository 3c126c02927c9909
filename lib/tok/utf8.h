/// UTF-8 as SentencePiece reads it: strict (no surrogates, no overlong forms, at most U+10FFFF), and a bad
/// sequence is bad one byte at a time. All functions are O(n), pure and thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace trainwright {

struct Utf8Character {
  uint32_t code_point = 0;
  size_t size_bytes = 0;  ///< 1 to 4; 0 when no valid character starts here
};

/// The character that starts at the first byte of `text`.
Utf8Character DecodeUtf8(std::string_view text);

/// That which starts at a place of text that is valid there: faster where most is ASCII.
inline Utf8Character Utf8CharacterAt(std::string_view text, size_t at) {
  const auto byte = static_cast<uint8_t>(text[at]);
  return byte < 0x80 ? Utf8Character{byte, 1} : DecodeUtf8(text.substr(at));
}

/// Appends a character. `code_point` is one of Unicode's.
void AppendUtf8(uint32_t code_point, std::string* out);

/// The character that ends with the last byte of `text`; size_bytes 0 when none does.
Utf8Character LastCharacter(std::string_view text);

/// How many bytes at the end of `text` begin a character that is longer, by what their first byte says.
size_t UnfinishedBytes(std::string_view text);

/// The offset of the first byte that is not part of a valid character; npos when there is none.
size_t FindInvalidUtf8(std::string_view text);

/// `text` with one U+FFFD in the place of each bad byte; counts them in `replaced` unless that is null.
std::string ReplaceInvalidUtf8(std::string_view text, uint64_t* replaced = nullptr);

/// The beginning of a text between quotation marks, for messages: control characters and bad bytes are
/// replaced.
std::string Quoted(std::string_view text);

/// Unicode characters of valid UTF-8; of other bytes, those that do not continue a character.
uint64_t CountCharacters(std::string_view text);

}  // namespace trainwright
