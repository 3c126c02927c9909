/// The tables of unicode.h, as scripts/make_unicode_tables.py writes them. All are sorted.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainwright::unicode {

/// Code points first to last have this value: a set of class flags, or a canonical combining class.
struct ClassRange {
  uint32_t first, last;
  uint8_t value;
};
/// The full canonical decomposition of a character, zeros after it. Hangul syllables are left to arithmetic.
struct Decomposition {
  uint32_t code_point;
  uint32_t to[4];
};
/// `first` and `second` make `composite` in NFC.
struct Composition {
  uint32_t first, second, composite;
};

extern const ClassRange kClassRanges[];
extern const size_t kClassRangeCount;
extern const ClassRange kCombiningClasses[];
extern const size_t kCombiningClassCount;
extern const Decomposition kDecompositions[];
extern const size_t kDecompositionCount;
extern const Composition kCompositions[];
extern const size_t kCompositionCount;

}  // namespace trainwright::unicode
