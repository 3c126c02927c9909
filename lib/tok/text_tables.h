/// The tables of text_classes.h and of compatibility decomposition, as scripts/make_text_tables.py writes
/// them. All are sorted.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainwright::unicode {

/// Code points first to last have this set of flags.
struct TextRange {
  uint32_t first, last;
  uint8_t flags;
};
/// What a character becomes: `count` code points from `begin` on of the texts.
struct Mapping {
  uint32_t code_point;
  uint16_t begin, count;
};

extern const TextRange kTextRanges[];
extern const size_t kTextRangeCount;
/// Full decompositions of NFKD where they are not those of NFD.
extern const Mapping kCompatible[];
extern const size_t kCompatibleCount;
extern const uint32_t kCompatibleTexts[];
extern const Mapping kLowered[];
extern const size_t kLoweredCount;
extern const uint32_t kLoweredTexts[];

}  // namespace trainwright::unicode
