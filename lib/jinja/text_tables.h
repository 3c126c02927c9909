/// What Python's str knows about code points; text_tables.cc is written by make_text_tables.py.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainwright::jinja {

struct CodeRange {
  char32_t first, last;
};

/// Every `stride`-th code point from first to last becomes the one `shift` further on.
struct CaseRange {
  char32_t first, last;
  uint32_t stride;
  int32_t shift;
};

/// A code point that becomes several.
struct SpecialCase {
  char32_t point;
  const char* text;
};

extern const CodeRange kUnprintable[], kAlpha[], kDigit[], kAlnum[], kUpperCase[], kLowerCase[], kCased[],
    kCaseIgnorable[];
extern const size_t kUnprintableCount, kAlphaCount, kDigitCount, kAlnumCount, kUpperCaseCount,
    kLowerCaseCount, kCasedCount, kCaseIgnorableCount;
/// The zeros of the kinds of decimal digits, the other nine of which follow each.
extern const char32_t kDecimalZeros[];
extern const size_t kDecimalZeroCount;
extern const CaseRange kUpperRanges[], kTitleRanges[], kLowerRanges[];
extern const size_t kUpperRangeCount, kTitleRangeCount, kLowerRangeCount;
extern const SpecialCase kUpperSpecials[], kTitleSpecials[], kLowerSpecials[];
extern const size_t kUpperSpecialCount, kTitleSpecialCount, kLowerSpecialCount;

}  // namespace trainwright::jinja
