/// Where the regular expressions of byte-level BPE tokenizers cut a text, by hand-written scanners.
///
/// Classes of characters are those of unicode.h. A byte that is not UTF-8 is a character of its own that is
/// neither letter nor number nor space.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace trainwright {

enum class CutRule {
  kNone,    ///< not at all
  kGpt2,    ///< 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  kLlama3,  ///< (?i:'s|...)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
            ///< ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  kQwen2,   ///< as kLlama3, with \p{N} for \p{N}{1,3}
  kCl100k,  ///< as kLlama3, with white space at the end of the text in one piece: \s++$ before \s*[\r\n]
  kO200k,   ///< words of capitals and then small letters, with marks and a contraction after them; see
            ///< RegularExpressionOf
};

/// The rule of a regular expression as it is written in tokenizer.json files; nullopt when there is none.
std::optional<CutRule> CutRuleOf(std::string_view regular_expression);

/// The rule as it is written there, kCl100k as tiktoken 0.14.0 writes it; empty for kNone.
std::string_view RegularExpressionOf(CutRule rule);

/// The end of the piece that begins at `begin` < text.size(), which must be the beginning of a piece.
size_t PieceEnd(CutRule rule, std::string_view text, size_t begin, const uint8_t* classes);

}  // namespace trainwright
