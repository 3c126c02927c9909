#include "lib/tok/text_normalizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/tok/text_classes.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

constexpr uint8_t kOther = 0xFF;
constexpr size_t kLongestGraphemeBytes = 5;  // that Precompiled takes as a whole

bool IsAscii(char byte) {
  return static_cast<uint8_t>(byte) < 0x80;
}

bool IsPrintable(char byte) {
  return static_cast<uint8_t>(byte - 0x20) <= 0x7E - 0x20;
}

/// Bytes that are looked at together, which a compiler makes vectors of.
constexpr size_t kBlockBytes = 64;

/// How many characters from a place on are printable ASCII.
size_t CountPrintable(std::string_view text, size_t begin) {
  size_t at = begin;
  while (at + kBlockBytes <= text.size()) {
    uint8_t others = 0;
    for (size_t i = 0; i < kBlockBytes; ++i) others |= static_cast<uint8_t>(!IsPrintable(text[at + i]));
    if (others != 0) break;
    at += kBlockBytes;
  }
  while (at < text.size() && IsPrintable(text[at])) ++at;
  return at - begin;
}

/// The first place from `at` on where two ' ' lie side by side; the end where there is none.
size_t FindTwoSpaces(std::string_view text, size_t at) {
  while (at + kBlockBytes < text.size()) {
    uint8_t pairs = 0;
    for (size_t i = 0; i < kBlockBytes; ++i) {
      pairs |= static_cast<uint8_t>((text[at + i] == ' ') & (text[at + i + 1] == ' '));
    }
    if (pairs != 0) break;
    at += kBlockBytes;
  }
  for (; at + 1 < text.size(); ++at) {
    if (text[at] == ' ' && text[at + 1] == ' ') return at;
  }
  return text.size();
}

bool IsSpace(uint32_t code_point) {
  return (CharacterClasses()[code_point] & kSpace) != 0;
}

bool Has(uint32_t code_point, uint8_t classes) {
  return (TextClasses()[code_point] & classes) != 0;
}

/// Calls `visit(code_point, bytes)` for each character.
template <typename Visit>
void ForEachCharacter(std::string_view text, Visit&& visit) {
  while (!text.empty()) {
    const Utf8Character character = Utf8CharacterAt(text, 0);
    visit(character.code_point, text.substr(0, character.size_bytes));
    text.remove_prefix(character.size_bytes);
  }
}

/// The characters that `becomes` gives none for, with -1, are taken out.
/// \returns whether the first one stays
template <typename Becomes>
bool MapCharacters(std::string_view text, std::string* out, Becomes&& becomes) {
  bool first_stays = true;
  ForEachCharacter(text, [&](uint32_t code_point, std::string_view bytes) {
    const int64_t to = becomes(code_point);
    if (to == code_point) {
      out->append(bytes);
    } else if (to >= 0) {
      AppendUtf8(static_cast<uint32_t>(to), out);
    } else if (bytes.data() == text.data()) {
      first_stays = false;
    }
  });
  return first_stays;
}

int64_t NmtOf(uint32_t c) {
  if ((c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F)
    return -1;
  const bool space = c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                     (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                     c == 0xFEFF || c == 0xFFFD;
  return space ? ' ' : c;
}

void Lower(std::string_view text, std::string* out) {
  ForEachCharacter(text, [&](uint32_t code_point, std::string_view) { AppendLowercase(code_point, out); });
}

bool Strip(bool left, bool right, std::string_view text, std::string* out) {
  size_t begin = 0;
  while (left && begin < text.size()) {
    const Utf8Character character = DecodeUtf8(text.substr(begin));
    if (!IsSpace(character.code_point)) break;
    begin += character.size_bytes;
  }
  text.remove_prefix(begin);
  while (right && !text.empty()) {
    const Utf8Character character = LastCharacter(text);
    if (!IsSpace(character.code_point)) break;
    text.remove_suffix(character.size_bytes);
  }
  out->append(text);
  return begin == 0;
}

/// \returns whether what comes first stands for the first character, where the match `match` was there
bool KeepsFirst(std::string_view match, std::string_view content) {
  return !content.empty() && DecodeUtf8(match).size_bytes == match.size();
}

bool Replace(const NormalizerStep& step, std::string_view text, std::string* out) {
  bool keeps_first = true;
  for (size_t at = 0;;) {
    const size_t found = text.find(step.pattern, at);
    if (found == 0) keeps_first = KeepsFirst(step.pattern, step.content);
    out->append(text.substr(at, found - at));
    if (found == std::string_view::npos) return keeps_first;
    out->append(step.content);
    at = found + step.pattern.size();
  }
}

/// The bytes of the white space, or of the ' ', at a place; 0 where there is none.
size_t SpaceBytes(const NormalizerStep& step, std::string_view text, size_t at) {
  if (!step.any_white_space) return text[at] == ' ' ? 1 : 0;
  const Utf8Character character = Utf8CharacterAt(text, at);
  return IsSpace(character.code_point) ? character.size_bytes : 0;
}

/// ReplaceRuns where a single ' ' is no run.
bool ReplaceLongRuns(const NormalizerStep& step, std::string_view text, std::string* out) {
  bool keeps_first = true;
  size_t copied = 0;
  for (size_t at = 0; (at = FindTwoSpaces(text, at)) < text.size();) {
    const size_t end = std::min(text.find_first_not_of(' ', at), text.size());
    if (end - at >= step.shortest_run) {
      out->append(text.substr(copied, at - copied));
      out->append(step.content);
      if (at == 0) keeps_first = KeepsFirst(text.substr(0, end), step.content);
      copied = end;
    }
    at = end;
  }
  out->append(text.substr(copied));
  return keeps_first;
}

bool ReplaceRuns(const NormalizerStep& step, std::string_view text, std::string* out) {
  if (!step.any_white_space && step.shortest_run > 1) return ReplaceLongRuns(step, text, out);
  bool keeps_first = true;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    while (at < text.size() && SpaceBytes(step, text, at) == 0) {
      at += step.any_white_space ? Utf8CharacterAt(text, at).size_bytes : 1;
    }
    out->append(text.substr(begin, at - begin));
    const size_t run = at;
    size_t count = 0;
    for (size_t size = 0; at < text.size() && (size = SpaceBytes(step, text, at)) > 0; at += size) ++count;
    if (count > 0 && count >= step.shortest_run) {
      if (run == 0) keeps_first = KeepsFirst(text.substr(0, at), step.content);
      out->append(step.content);
    } else {
      out->append(text.substr(run, at - run));
    }
  }
  return keeps_first;
}

/// The end of the grapheme at `begin`. Of those that Hangul, emoji, flags and Indic conjuncts are joined to,
/// which are longer than kLongestGraphemeBytes, each part is taken for one.
/// \source Unicode Standard Annex #29, rules GB3 to GB9b
size_t GraphemeEnd(std::string_view text, size_t begin) {
  const Utf8Character first = DecodeUtf8(text.substr(begin));
  size_t end = begin + first.size_bytes;
  if (first.code_point == '\r' && end < text.size() && text[end] == '\n') return end + 1;
  if (Has(first.code_point, kStandsAlone)) return end;
  bool prepends = Has(first.code_point, kPrepends);
  while (end < text.size()) {
    const Utf8Character next = DecodeUtf8(text.substr(end));
    if (!Has(next.code_point, kExtends) && (!prepends || Has(next.code_point, kStandsAlone))) break;
    prepends = Has(next.code_point, kPrepends);
    end += next.size_bytes;
  }
  return end;
}

/// \param ascii what becomes of ASCII characters beside ASCII, kOther: more than one
/// \param keeps_printable whether the printable ones become themselves
void ReplaceByMap(const CharacterMap& map, const std::vector<uint8_t>& ascii, bool keeps_printable,
                  std::string_view text, std::string* out) {
  for (size_t at = 0; at < text.size();) {
    // What is beside the last one of a run may be joined to it.
    const auto without_joined = [&](size_t begin, size_t end) {
      return end > begin && end < text.size() && !IsAscii(text[end]) ? end - 1 : end;
    };
    if (keeps_printable && IsPrintable(text[at])) {
      const size_t end = without_joined(at, at + CountPrintable(text, at));
      out->append(text.substr(at, end - at));
      const bool moved = end > at;
      at = end;
      if (moved) continue;
    } else if (IsAscii(text[at])) {
      const size_t begin = at, old_size = out->size();
      while (at < text.size() && IsAscii(text[at]) && ascii[static_cast<uint8_t>(text[at])] != kOther &&
             !(keeps_printable && IsPrintable(text[at]))) {
        ++at;
      }
      at = without_joined(begin, at);
      out->resize(old_size + (at - begin));
      for (size_t i = begin; i < at; ++i) {
        (*out)[old_size + i - begin] = static_cast<char>(ascii[static_cast<uint8_t>(text[i])]);
      }
      if (at > begin) continue;
    }
    const size_t end = GraphemeEnd(text, at);
    const std::string_view grapheme = text.substr(at, end - at);
    at = end;
    if (grapheme.size() <= kLongestGraphemeBytes) {
      if (const auto match = map.FindShortest(grapheme); match.size_bytes > 0) {
        out->append(match.replacement);
        continue;
      }
    }
    ForEachCharacter(grapheme, [&](uint32_t, std::string_view character) {
      const auto match = map.FindShortest(character);
      out->append(match.size_bytes > 0 ? match.replacement : character);
    });
  }
}

int64_t CleanOf(uint32_t c) {
  if (Has(c, kControlCharacter)) return -1;
  return IsSpace(c) ? ' ' : c;
}

/// Appends what MapCharacters makes of ASCII alone by CleanOf.
void CleanAscii(std::string_view text, std::string* out) {
  static const std::array<int8_t, 128> cleaned = [] {
    std::array<int8_t, 128> table{};
    for (uint32_t c = 0; c < table.size(); ++c) table[c] = static_cast<int8_t>(CleanOf(c));
    return table;
  }();
  const size_t old_size = out->size();
  out->resize(old_size + text.size());
  char* to = out->data() + old_size;
  for (const char character : text) {
    const int8_t becomes = cleaned[static_cast<uint8_t>(character)];
    *to = static_cast<char>(becomes);
    to += becomes < 0 ? 0 : 1;
  }
  out->resize(static_cast<size_t>(to - out->data()));
}

void LowerAscii(std::string_view text, std::string* out) {
  const size_t old_size = out->size();
  out->append(text);
  for (char* at = out->data() + old_size; at != out->data() + out->size(); ++at) {
    const auto byte = static_cast<uint8_t>(*at);
    *at = static_cast<char>(byte | (static_cast<uint8_t>(byte - 'A') < 26 ? 0x20 : 0));
  }
}

/// As many characters at the beginning of a text as are all ASCII, or all not.
std::string_view FirstRun(std::string_view text) {
  const bool ascii = IsAscii(text[0]);
  size_t size = 1;
  while (size < text.size() && IsAscii(text[size]) == ascii) ++size;
  return text.substr(0, size);
}

/// The steps behind the first, of a run without ASCII.
/// \returns whether the first character stays
bool NormalizeBertRun(const NormalizerStep& step, std::string_view run, std::string* out) {
  std::string current(run), next;
  bool keeps_first = true;
  const auto take = [&] {
    current.swap(next);
    next.clear();
  };
  if (step.space_chinese) {
    ForEachCharacter(current, [&](uint32_t c, std::string_view bytes) {
      const bool chinese = Has(c, kChinese);
      if (chinese) next.push_back(' ');
      next.append(bytes);
      if (chinese) next.push_back(' ');
    });
    take();
  }
  if (step.strip_accents) {
    Normalize(NormalForm::kNfd, current, &next);
    take();
    keeps_first = MapCharacters(
        current, &next, [](uint32_t c) -> int64_t { return Has(c, kNonspacingMark) ? -1 : int64_t{c}; });
    take();
  }
  if (step.lowercase) {
    Lower(current, &next);
    take();
  }
  out->append(current);
  return keeps_first;
}

/// The four steps, one after the other. Of what is clean, a run of ASCII, and one of anything else, becomes
/// the same alone: only decomposition looks at two characters, and it moves no mark across one of ASCII.
bool NormalizeBert(const NormalizerStep& step, std::string_view text, std::string* out) {
  std::string cleaned;
  bool keeps_first = true;
  if (step.clean_text) {
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view run = FirstRun(rest);
      rest.remove_prefix(run.size());
      if (IsAscii(run[0])) {
        CleanAscii(run, &cleaned);
        if (run.data() == text.data()) keeps_first = CleanOf(static_cast<uint8_t>(run[0])) >= 0;
      } else {
        const bool stays = MapCharacters(run, &cleaned, CleanOf);
        if (run.data() == text.data()) keeps_first = stays;
      }
    }
    text = cleaned;
  }
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view run = FirstRun(rest);
    rest.remove_prefix(run.size());
    if (!IsAscii(run[0])) {
      const bool stays = NormalizeBertRun(step, run, out);
      if (run.data() == text.data()) keeps_first = keeps_first && stays;
    } else if (step.lowercase) {
      LowerAscii(run, out);
    } else {
      out->append(run);
    }
  }
  return keeps_first;
}

std::vector<uint8_t> AsciiOf(const CharacterMap& map) {
  std::vector<uint8_t> ascii(128, kOther);
  for (uint32_t c = 1; c < 128; ++c) {
    if (c == '\r') continue;
    const char character = static_cast<char>(c);
    const auto match = map.FindShortest(std::string_view(&character, 1));
    if (match.size_bytes == 0) {
      ascii[c] = static_cast<uint8_t>(c);
    } else if (match.replacement.size() == 1 && IsAscii(match.replacement[0])) {
      ascii[c] = static_cast<uint8_t>(match.replacement[0]);
    }
  }
  return ascii;
}

}  // namespace

TextNormalizer::TextNormalizer(std::vector<NormalizerStep> steps) {
  for (NormalizerStep& step : steps) {
    std::vector<uint8_t> ascii;
    if (step.map != nullptr) ascii = AsciiOf(*step.map);
    bool keeps_printable = !ascii.empty();
    for (uint8_t c = 0x20; keeps_printable && c <= 0x7E; ++c) keeps_printable = ascii[c] == c;
    steps_.push_back({std::move(step), std::move(ascii), keeps_printable});
  }
}

bool TextNormalizer::strips_left() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const Step& step) {
    return step.left || step.kind == NormalizerStep::Kind::kTrimSpaces;
  });
}

bool TextNormalizer::Apply(const Step& step, std::string_view text, bool prepend, std::string* out) {
  using Kind = NormalizerStep::Kind;
  switch (step.kind) {
    case Kind::kForm:
      trainwright::Normalize(step.form, text, out);
      return true;
    case Kind::kLowercase:
      Lower(text, out);
      return true;
    case Kind::kStripAccents:
      return MapCharacters(text, out, [](uint32_t c) -> int64_t { return Has(c, kMark) ? -1 : int64_t{c}; });
    case Kind::kStrip:
      return Strip(step.left, step.right, text, out);
    case Kind::kNmt:
      return MapCharacters(text, out, NmtOf);
    case Kind::kReplace:
      return Replace(step, text, out);
    case Kind::kReplaceRuns:
      return ReplaceRuns(step, text, out);
    case Kind::kReplaceStart: {
      const std::string_view space = " ", pattern = step.pattern,
                             start = step.or_space && text.starts_with(space) ? space : pattern;
      const bool there = text.starts_with(start);
      if (there) out->append(step.content);
      out->append(text.substr(there ? start.size() : 0));
      return !there || KeepsFirst(start, step.content);
    }
    case Kind::kTrimSpaces: {
      const size_t begin = std::min(text.find_first_not_of(' '), text.size());
      out->append(text.substr(begin, text.find_last_not_of(' ') + 1 - begin));
      return begin == 0;
    }
    case Kind::kPrepend:
      if (prepend && !text.empty()) out->append(step.content);
      out->append(text);
      return true;
    case Kind::kPrecompiled:
      ReplaceByMap(*step.map, step.ascii, step.keeps_printable, text, out);
      return true;
    case Kind::kBert:
      return NormalizeBert(step, text, out);
  }
  return true;
}

bool TextNormalizer::Normalize(std::string_view text, bool prepend, std::string* out) const {
  if (steps_.empty()) {
    out->assign(text);
    return true;
  }
  bool keeps_first = true;
  std::string before;
  for (const Step& step : steps_) {
    const bool is_first = &step == steps_.data();
    if (!is_first) out->swap(before);
    out->clear();
    const bool keeps = Apply(step, is_first ? text : std::string_view(before), prepend, out);
    keeps_first = keeps_first && keeps;
  }
  return keeps_first;
}

}  // namespace trainwright
