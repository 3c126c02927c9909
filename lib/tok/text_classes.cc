#include "lib/tok/text_classes.h"

#include <algorithm>
#include <vector>

#include "lib/tok/text_tables.h"
#include "lib/tok/utf8.h"

namespace trainwright {

using unicode::Mapping;

const uint8_t* TextClasses() {
  static const std::vector<uint8_t> classes = [] {
    std::vector<uint8_t> flags(0x110000);
    for (size_t i = 0; i < unicode::kTextRangeCount; ++i) {
      const unicode::TextRange& range = unicode::kTextRanges[i];
      std::fill(flags.begin() + range.first, flags.begin() + range.last + 1, range.flags);
    }
    return flags;
  }();
  return classes.data();
}

void AppendLowercase(uint32_t code_point, std::string* out) {
  if (code_point < 0x80) {
    const bool capital = code_point >= 'A' && code_point <= 'Z';
    out->push_back(static_cast<char>(capital ? code_point | 0x20 : code_point));
    return;
  }
  const Mapping* const end = unicode::kLowered + unicode::kLoweredCount;
  const Mapping* const found =
      std::lower_bound(unicode::kLowered, end, code_point,
                       [](const Mapping& mapping, uint32_t c) { return mapping.code_point < c; });
  if (found == end || found->code_point != code_point) return AppendUtf8(code_point, out);
  for (size_t i = 0; i < found->count; ++i) AppendUtf8(unicode::kLoweredTexts[found->begin + i], out);
}

}  // namespace trainwright
