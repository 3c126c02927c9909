/// Classes of characters for normalisers and pre-tokenizers, as Hugging Face tokenizers has them (see
/// text_tables.cc for the version). Pure and thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace trainwright {

/// Classes of a character, as flags.
enum TextClass : uint8_t {
  kMark = 1,              ///< what StripAccents takes out
  kNonspacingMark = 2,    ///< what BertNormalizer takes out with accents
  kControlCharacter = 4,  ///< what BertNormalizer cleans away
  kPunctuation = 8,       ///< what BertPreTokenizer sets apart
  kChinese = 16,          ///< what BertNormalizer puts spaces around
  kExtends = 32,          ///< belongs to the grapheme of the character before it
  kPrepends = 64,         ///< belongs to the grapheme of the character after it
  kStandsAlone = 128      ///< is a grapheme of its own whatever is beside it, but for CR before LF
};

/// The flags of every code point: 0x110000 bytes, made at the first call.
const uint8_t* TextClasses();

/// Appends the lower case of a character, whatever is beside it.
void AppendLowercase(uint32_t code_point, std::string* out);

}  // namespace trainwright
