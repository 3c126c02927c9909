#include "lib/tok/unicode.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "lib/tok/text_tables.h"
#include "lib/tok/unicode_tables.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

using namespace unicode;

constexpr uint32_t kCodePoints = 0x110000;
// Hangul syllables, composed by arithmetic. \source The Unicode Standard, section 3.12
constexpr uint32_t kSyllableBase = 0xAC00, kLeadBase = 0x1100, kVowelBase = 0x1161, kTailBase = 0x11A7;
constexpr uint32_t kLeads = 19, kVowels = 21, kTails = 28, kSyllables = kLeads * kVowels * kTails;

std::vector<uint8_t> MakeClasses() {
  std::vector<uint8_t> classes(kCodePoints, 0);
  const auto add = [&](uint32_t first, uint32_t last, uint8_t flags) {
    for (uint32_t c = first; c <= last; ++c) classes[c] = static_cast<uint8_t>(classes[c] | flags);
  };
  for (size_t i = 0; i < kClassRangeCount; ++i) {
    add(kClassRanges[i].first, kClassRanges[i].last, kClassRanges[i].value);
  }
  for (size_t i = 0; i < kCombiningClassCount; ++i) {
    add(kCombiningClasses[i].first, kCombiningClasses[i].last, kUnstable);
  }
  std::unordered_map<uint32_t, bool> stays;
  for (size_t i = 0; i < kCompositionCount; ++i) {
    add(kCompositions[i].second, kCompositions[i].second, kUnstable);
    stays[kCompositions[i].composite] = true;
  }
  for (size_t i = 0; i < kDecompositionCount; ++i) {
    const uint32_t c = kDecompositions[i].code_point;
    if (!stays.contains(c)) add(c, c, kUnstable);
  }
  add(kVowelBase, kVowelBase + kVowels - 1, kUnstable);
  add(kTailBase + 1, kTailBase + kTails - 1, kUnstable);
  return classes;
}

/// What NFC needs, in a form that is quick to ask.
struct NfcTables {
  std::unordered_map<uint32_t, uint8_t> combining_class;
  std::unordered_map<uint32_t, const Decomposition*> decomposition;
  std::unordered_map<uint64_t, uint32_t> composite;

  NfcTables() {
    for (size_t i = 0; i < kCombiningClassCount; ++i) {
      const ClassRange& range = kCombiningClasses[i];
      for (uint32_t c = range.first; c <= range.last; ++c) combining_class[c] = range.value;
    }
    for (size_t i = 0; i < kDecompositionCount; ++i) {
      decomposition[kDecompositions[i].code_point] = &kDecompositions[i];
    }
    for (size_t i = 0; i < kCompositionCount; ++i) {
      composite[uint64_t{kCompositions[i].first} << 32 | kCompositions[i].second] =
          kCompositions[i].composite;
    }
  }
  uint8_t CombiningClassOf(uint32_t c) const {
    const auto found = combining_class.find(c);
    return found == combining_class.end() ? 0 : found->second;
  }
  /// The character that the two make; 0 when they make none.
  uint32_t CompositeOf(uint32_t first, uint32_t second) const {
    if (first - kLeadBase < kLeads && second - kVowelBase < kVowels) {
      return kSyllableBase + ((first - kLeadBase) * kVowels + (second - kVowelBase)) * kTails;
    }
    if (first - kSyllableBase < kSyllables && (first - kSyllableBase) % kTails == 0 && second > kTailBase &&
        second - kTailBase < kTails) {
      return first + (second - kTailBase);
    }
    const auto found = composite.find(uint64_t{first} << 32 | second);
    return found == composite.end() ? 0 : found->second;
  }
};

const NfcTables& Tables() {
  static const NfcTables tables;
  return tables;
}

struct Mark {
  uint32_t code_point;
  uint8_t combining_class;
};

void Decompose(uint32_t c, bool compatible, const NfcTables& tables, std::vector<Mark>* out) {
  const auto add = [&](uint32_t part) { out->push_back({part, tables.CombiningClassOf(part)}); };
  if (compatible) {
    const Mapping* const end = kCompatible + kCompatibleCount;
    const Mapping* const found =
        std::lower_bound(kCompatible, end, c,
                         [](const Mapping& mapping, uint32_t wanted) { return mapping.code_point < wanted; });
    if (found != end && found->code_point == c) {
      for (size_t i = 0; i < found->count; ++i) add(kCompatibleTexts[found->begin + i]);
      return;
    }
  }
  if (c - kSyllableBase < kSyllables) {
    const uint32_t index = c - kSyllableBase;
    add(kLeadBase + index / (kVowels * kTails));
    add(kVowelBase + index % (kVowels * kTails) / kTails);
    if (index % kTails != 0) add(kTailBase + index % kTails);
    return;
  }
  const auto found = tables.decomposition.find(c);
  if (found == tables.decomposition.end()) return add(c);
  for (const uint32_t part : found->second->to) {
    if (part != 0) add(part);
  }
}

/// \source The Unicode Standard, section 3.11: canonical ordering
void Order(std::vector<Mark>* text) {
  for (size_t begin = 0; begin < text->size();) {
    if ((*text)[begin].combining_class == 0) {
      ++begin;
      continue;
    }
    size_t end = begin;
    while (end < text->size() && (*text)[end].combining_class != 0) ++end;
    std::stable_sort(text->begin() + static_cast<ptrdiff_t>(begin),
                     text->begin() + static_cast<ptrdiff_t>(end),
                     [](const Mark& a, const Mark& b) { return a.combining_class < b.combining_class; });
    begin = end;
  }
}

/// \source The Unicode Standard, section 3.11: canonical composition
void Compose(const NfcTables& tables, std::vector<Mark>* text) {
  constexpr size_t kNone = static_cast<size_t>(-1);
  size_t starter = kNone, written = 0;
  for (const Mark mark : std::vector<Mark>(*text)) {
    if (starter != kNone) {
      const bool adjacent = written == starter + 1;
      const bool blocked = !adjacent && ((*text)[written - 1].combining_class == 0 ||
                                         (*text)[written - 1].combining_class >= mark.combining_class);
      const uint32_t composite =
          blocked ? 0 : tables.CompositeOf((*text)[starter].code_point, mark.code_point);
      if (composite != 0) {
        (*text)[starter].code_point = composite;
        continue;
      }
    }
    if (mark.combining_class == 0) starter = written;
    (*text)[written++] = mark;
  }
  text->resize(written);
}

}  // namespace

const uint8_t* CharacterClasses() {
  static const std::vector<uint8_t> classes = MakeClasses();
  return classes.data();
}

bool NormalizeNfc(std::string_view text, std::string* normalized) {
  const uint8_t* classes = CharacterClasses();
  // Up to `done` the text is copied. A stretch that may change runs from the stable character before the
  // first unstable one to the next stable one.
  size_t done = 0, stable = 0;
  bool changed = false;
  std::vector<Mark> stretch;
  std::string composed;
  for (size_t at = 0; at < text.size();) {
    // Nothing below U+0300 is unstable: lead bytes up to 0xCB.
    if (static_cast<uint8_t>(text[at]) < 0xCC) {
      if ((static_cast<uint8_t>(text[at]) & 0xC0) != 0x80) stable = at;
      ++at;
      continue;
    }
    const Utf8Character character = DecodeUtf8(text.substr(at));
    if (character.size_bytes == 0 || (classes[character.code_point] & kUnstable) == 0) {
      stable = at;
      at += std::max<size_t>(character.size_bytes, 1);
      continue;
    }
    const NfcTables& tables = Tables();
    stretch.clear();
    size_t end = stable;
    while (end < text.size()) {
      const Utf8Character next = DecodeUtf8(text.substr(end));
      if (next.size_bytes == 0 && end < at) {  // the byte before is no character
        stretch.clear();
        end = stable = at;
        continue;
      }
      if (next.size_bytes == 0 || (end > at && (classes[next.code_point] & kUnstable) == 0)) break;
      Decompose(next.code_point, /*compatible=*/false, tables, &stretch);
      end += next.size_bytes;
    }
    Order(&stretch);
    Compose(tables, &stretch);
    composed.clear();
    for (const Mark& mark : stretch) AppendUtf8(mark.code_point, &composed);
    if (composed != text.substr(stable, end - stable)) {
      if (!changed) normalized->clear();
      changed = true;
      normalized->append(text.substr(done, stable - done)).append(composed);
      done = end;
    }
    at = end;
    // What follows is stable, invalid or the end: the next stretch begins there.
    stable = end;
  }
  if (changed) normalized->append(text.substr(done));
  return changed;
}

void Normalize(NormalForm form, std::string_view text, std::string* normalized) {
  const bool composes = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  const auto is_ascii = [](char byte) { return static_cast<uint8_t>(byte) < 0x80; };
  const NfcTables& tables = Tables();
  std::vector<Mark> stretch;
  normalized->clear();
  for (auto at = text.begin(); at != text.end();) {
    // ASCII stays as it is, but that what follows its last character may compose with it.
    auto wide = std::find_if_not(at, text.end(), is_ascii);
    if (wide == text.end()) {
      normalized->append(at, wide);
      return;
    }
    const auto begin = wide == at ? at : wide - 1;
    normalized->append(at, begin);
    const auto end = std::find_if(wide, text.end(), is_ascii);
    stretch.clear();
    for (std::string_view rest(begin, end); !rest.empty();) {
      const Utf8Character character = DecodeUtf8(rest);
      rest.remove_prefix(std::max<size_t>(character.size_bytes, 1));
      Decompose(character.code_point, compatible, tables, &stretch);
    }
    Order(&stretch);
    if (composes) Compose(tables, &stretch);
    for (const Mark& mark : stretch) AppendUtf8(mark.code_point, normalized);
    at = end;
  }
}

}  // namespace trainwright
