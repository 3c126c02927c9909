/// Special tokens that a text spells in data: they must stay text, so that no record can end a turn or begin
/// another's.
///
/// Data are the bytes of a text that come from a record (jinja::Rendered::data). A special token is the
/// template's where none of its bytes is data; each other one is cut, so that no tokenizer sees it.
///
/// Immutable after construction and thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/jinja/span.h"

namespace trainwright {

/// A place that tokenizers must not see across.
struct SpecialCut {
  uint64_t at = 0;  ///< byte of the text, between two characters
  /// The bytes before `at`, of one character, that are a special token by themselves: to be encoded by
  /// Tokenizer::EncodeUnmatched. 0 where the cut alone does.
  uint64_t unmatched = 0;
  bool operator==(const SpecialCut&) const = default;
};

/// Whether bytes [begin, end) are the template's alone.
bool HasNoData(const std::vector<jinja::Span>& data, uint64_t begin, uint64_t end);

class SpelledSpecials {
 public:
  /// \param specials as they are written; empty ones are left out
  explicit SpelledSpecials(std::vector<std::string> specials);

  /// The bytes of the longest special token of the template at `at`; 0: none.
  /// \param data where the data are in `text`: in order, apart from each other
  size_t SizeAt(std::string_view text, const std::vector<jinja::Span>& data, size_t at) const;
  /// Where those that data spell, in whole or in part, are to be cut, in order. Linear in the text.
  std::vector<SpecialCut> CutsOf(std::string_view text, const std::vector<jinja::Span>& data) const;

 private:
  std::vector<std::string> specials_;  // by first byte, then the longest first
  std::array<uint32_t, 257> first_{};  // where in specials_ those with a first byte begin
};

}  // namespace trainwright
