/// Character classes and normalisation as Hugging Face tokenizers has them (see unicode_tables.cc for the
/// version). Pure and thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trainwright {

/// Classes of a character, as flags.
enum CharacterClass : uint8_t {
  kLetter = 1,     ///< \p{L}
  kNumber = 2,     ///< \p{N}
  kSpace = 4,      ///< \s
  kDigit = 8,      ///< what the pre-tokenizer Digits takes for one
  kWord = 16,      ///< \w
  kUnstable = 32,  ///< NFC may change it, or it what precedes it
  kCapital = 64,   ///< [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
  kSmall = 128     ///< [\p{Ll}\p{Lm}\p{Lo}\p{M}]
};

/// The flags of every code point: 0x110000 bytes, made at the first call.
const uint8_t* CharacterClasses();

/// `text` in Unicode normalisation form C. Bytes that are not UTF-8 stay as they are, and nothing composes
/// across them.
/// \returns false, and leaves `normalized` alone, when `text` is in that form already
bool NormalizeNfc(std::string_view text, std::string* normalized);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

/// `text` in a Unicode normalisation form, in `normalized`.
/// \param text valid UTF-8
void Normalize(NormalForm form, std::string_view text, std::string* normalized);

}  // namespace trainwright
