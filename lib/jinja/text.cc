#include "lib/jinja/text.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "lib/jinja/text_tables.h"

namespace trainwright::jinja {
namespace {

bool InRanges(const CodeRange* ranges, size_t count, char32_t point) {
  const CodeRange* end = ranges + count;
  const CodeRange* at = std::upper_bound(
      ranges, end, point, [](char32_t value, const CodeRange& range) { return value < range.first; });
  return at != ranges && point <= (at - 1)->last;
}

const CaseRange* FindCase(const CaseRange* ranges, size_t count, char32_t point) {
  const CaseRange* end = ranges + count;
  const CaseRange* at = std::upper_bound(
      ranges, end, point, [](char32_t value, const CaseRange& range) { return value < range.first; });
  if (at == ranges || point > (at - 1)->last) return nullptr;
  --at;
  return (point - at->first) % at->stride == 0 ? at : nullptr;
}

void AppendMapped(const CaseRange* ranges, size_t count, const SpecialCase* specials, size_t special_count,
                  char32_t point, std::string* out) {
  if (const CaseRange* range = FindCase(ranges, count, point)) {
    AppendPoint(static_cast<char32_t>(static_cast<int64_t>(point) + range->shift), out);
    return;
  }
  const SpecialCase* end = specials + special_count;
  const SpecialCase* at = std::lower_bound(
      specials, end, point, [](const SpecialCase& special, char32_t value) { return special.point < value; });
  if (at != end && at->point == point) {
    *out += at->text;
  } else {
    AppendPoint(point, out);
  }
}

void AppendUpper(char32_t point, std::string* out) {
  AppendMapped(kUpperRanges, kUpperRangeCount, kUpperSpecials, kUpperSpecialCount, point, out);
}

void AppendTitle(char32_t point, std::string* out) {
  AppendMapped(kTitleRanges, kTitleRangeCount, kTitleSpecials, kTitleSpecialCount, point, out);
}

void AppendLower(char32_t point, std::string* out) {
  AppendMapped(kLowerRanges, kLowerRangeCount, kLowerSpecials, kLowerSpecialCount, point, out);
}

bool IsCased(char32_t point) {
  return InRanges(kCased, kCasedCount, point);
}
bool IsCaseIgnorable(char32_t point) {
  return InRanges(kCaseIgnorable, kCaseIgnorableCount, point);
}

constexpr char32_t kCapitalSigma = 0x3a3, kFinalSigma = 0x3c2, kSigma = 0x3c3;

// Greek sigma has a form of its own at the end of a word.
char32_t LowerSigma(const std::vector<char32_t>& points, size_t at) {
  size_t before = at;
  while (before > 0 && IsCaseIgnorable(points[before - 1])) --before;
  if (before == 0 || !IsCased(points[before - 1])) return kSigma;
  size_t after = at + 1;
  while (after < points.size() && IsCaseIgnorable(points[after])) ++after;
  return after < points.size() && IsCased(points[after]) ? kSigma : kFinalSigma;
}

std::vector<char32_t> CodesOf(std::string_view text) {
  std::vector<char32_t> points;
  for (size_t at = 0; at < text.size();) points.push_back(NextPoint(text, &at));
  return points;
}

void AppendLowerAt(const std::vector<char32_t>& points, size_t at, std::string* out) {
  if (points[at] == kCapitalSigma) {
    AppendPoint(LowerSigma(points, at), out);
  } else {
    AppendLower(points[at], out);
  }
}

bool IsLineEnd(char32_t point) {
  return (point >= 0x0a && point <= 0x0d) || (point >= 0x1c && point <= 0x1e) || point == 0x85 ||
         point == 0x2028 || point == 0x2029;
}

bool StartsWithSpace(std::string_view point) {
  size_t at = 0;
  return IsSpace(NextPoint(point, &at));
}

// What is stripped: the code points of a text, or white space.
class PointSet {
 public:
  explicit PointSet(std::string_view text) : text_(text) {
    constexpr size_t kShort = 64;
    for (size_t at = 0; text.size() > kShort && at < text.size();) {
      const size_t begin = at;
      NextPoint(text, &at);
      points_.insert(text.substr(begin, at - begin));
    }
  }
  bool Has(std::string_view point) const {
    if (text_.empty()) return StartsWithSpace(point);
    return points_.empty() ? text_.find(point) != std::string_view::npos : points_.contains(point);
  }

 private:
  std::string_view text_;
  std::unordered_set<std::string_view> points_;  // of a long one
};

size_t BeginOfLastPoint(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && text.size() - at < 4 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  size_t end = at;
  NextPoint(text, &end);
  return end == text.size() ? at : text.size() - 1;
}

}  // namespace

char32_t NextPoint(std::string_view text, size_t* at) {
  const auto lead = static_cast<unsigned char>(text[*at]);
  const size_t size = lead < 0xc2 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 1;
  if (size == 1 || *at + size > text.size()) return ++*at, lead;
  char32_t point = lead & (0x7fU >> size);
  for (size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[*at + i]);
    if ((byte & 0xc0) != 0x80) return ++*at, lead;
    point = point << 6 | (byte & 0x3fU);
  }
  *at += size;
  return point;
}

void AppendPoint(char32_t point, std::string* out) {
  const auto code = static_cast<uint32_t>(point);
  const auto byte = [&](uint32_t value) { *out += static_cast<char>(static_cast<unsigned char>(value)); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0 | code >> 6);
    byte(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    byte(0xe0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3f));
    byte(0x80 | (code & 0x3f));
  } else {
    byte(0xf0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3f));
    byte(0x80 | (code >> 6 & 0x3f));
    byte(0x80 | (code & 0x3f));
  }
}

std::vector<std::string_view> PointsOf(std::string_view text) {
  std::vector<std::string_view> points;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    NextPoint(text, &at);
    points.push_back(text.substr(begin, at - begin));
  }
  return points;
}

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) >= 0; });
}

size_t PointCount(std::string_view text) {
  if (IsAscii(text)) return text.size();
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) NextPoint(text, &at);
  return count;
}

size_t ByteOf(std::string_view text, size_t index) {
  if (IsAscii(text)) return std::min(index, text.size());
  size_t at = 0;
  for (; index > 0 && at < text.size(); --index) NextPoint(text, &at);
  return at;
}

bool IsSpace(char32_t point) {
  return (point >= 0x09 && point <= 0x0d) || (point >= 0x1c && point <= 0x20) || point == 0x85 ||
         point == 0xa0 || point == 0x1680 || (point >= 0x2000 && point <= 0x200a) || point == 0x2028 ||
         point == 0x2029 || point == 0x202f || point == 0x205f || point == 0x3000;
}

bool IsPrintable(char32_t point) {
  if (point < 0x7f) return point >= 0x20;
  return !InRanges(kUnprintable, kUnprintableCount, point);
}
bool IsAlpha(char32_t point) {
  return InRanges(kAlpha, kAlphaCount, point);
}
bool IsDigit(char32_t point) {
  return InRanges(kDigit, kDigitCount, point);
}
bool IsAlnum(char32_t point) {
  return InRanges(kAlnum, kAlnumCount, point);
}
bool IsUpper(char32_t point) {
  return InRanges(kUpperCase, kUpperCaseCount, point);
}
bool IsLower(char32_t point) {
  return InRanges(kLowerCase, kLowerCaseCount, point);
}
int DecimalOf(char32_t point) {
  const char32_t* end = kDecimalZeros + kDecimalZeroCount;
  const char32_t* at = std::upper_bound(kDecimalZeros, end, point);
  return at != kDecimalZeros && point < *(at - 1) + 10 ? static_cast<int>(point - *(at - 1)) : -1;
}
bool IsWord(char32_t point) {
  return point == '_' || IsAlnum(point);
}

std::string Upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) AppendUpper(NextPoint(text, &at), &out);
  return out;
}

std::string Lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const std::vector<char32_t> points = CodesOf(text);
  for (size_t i = 0; i < points.size(); ++i) AppendLowerAt(points, i, &out);
  return out;
}

std::string Capitalized(std::string_view text) {
  std::string out;
  const std::vector<char32_t> points = CodesOf(text);
  for (size_t i = 0; i < points.size(); ++i) {
    if (i == 0) {
      AppendTitle(points[i], &out);
    } else {
      AppendLowerAt(points, i, &out);
    }
  }
  return out;
}

std::string Titled(std::string_view text) {
  std::string out;
  const std::vector<char32_t> points = CodesOf(text);
  bool within = false;
  for (size_t i = 0; i < points.size(); ++i) {
    if (within) {
      AppendLowerAt(points, i, &out);
    } else {
      AppendTitle(points[i], &out);
    }
    within = IsCased(points[i]);
  }
  return out;
}

std::string_view Stripped(std::string_view text, std::string_view set, bool left, bool right) {
  const PointSet stripped(set);
  while (left && !text.empty()) {
    size_t end = 0;
    NextPoint(text, &end);
    if (!stripped.Has(text.substr(0, end))) break;
    text.remove_prefix(end);
  }
  while (right && !text.empty()) {
    const size_t begin = BeginOfLastPoint(text);
    if (!stripped.Has(text.substr(begin))) break;
    text = text.substr(0, begin);
  }
  return text;
}

std::string_view NextLine(std::string_view text, bool keep_end, size_t* at) {
  const size_t begin = *at;
  while (*at < text.size()) {
    const size_t end = *at;
    const char32_t point = NextPoint(text, at);
    if (!IsLineEnd(point)) continue;
    if (point == '\r' && *at < text.size() && text[*at] == '\n') ++*at;
    return text.substr(begin, (keep_end ? *at : end) - begin);
  }
  return text.substr(begin);
}

size_t FindFirst(std::string_view text, std::string_view sought, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  const void* found = memmem(text.data() + from, text.size() - from, sought.data(), sought.size());
  if (found == nullptr) return sought.empty() ? from : std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

size_t FindLast(std::string_view text, std::string_view sought) {
  constexpr size_t kShort = 16;  // a few comparisons at each place cost less than turning the texts round
  if (sought.size() <= kShort) return text.rfind(sought);
  const std::string turned(text.rbegin(), text.rend()), turned_sought(sought.rbegin(), sought.rend());
  const size_t at = FindFirst(turned, turned_sought);
  return at == std::string_view::npos ? at : text.size() - at - sought.size();
}

size_t BeginOfLastWord(std::string_view text) {
  while (!text.empty()) {
    const size_t begin = BeginOfLastPoint(text);
    if (StartsWithSpace(text.substr(begin))) break;
    text = text.substr(0, begin);
  }
  return text.size();
}

size_t EndOfFirstWord(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (IsSpace(NextPoint(text, &at))) return begin;
  }
  return text.size();
}

std::string Replaced(std::string_view text, std::string_view old, std::string_view by, int64_t most) {
  std::string out;
  size_t at = 0;
  if (old.empty()) {  // between all code points
    for (; most != 0; --most) {
      out += by;
      if (at == text.size()) return out;
      const size_t begin = at;
      NextPoint(text, &at);
      out += text.substr(begin, at - begin);
    }
    return out.append(text.substr(at));
  }
  for (; most != 0; --most) {
    const size_t found = FindFirst(text, old, at);
    if (found == std::string_view::npos) break;
    out += text.substr(at, found - at);
    out += by;
    at = found + old.size();
  }
  return out.append(text.substr(at));
}

std::string Padded(std::string_view text, int64_t width, std::string_view fill, int side) {
  const auto size = static_cast<int64_t>(PointCount(text));
  if (width <= size) return std::string(text);
  const int64_t total = width - size;
  // CPython's str.center puts the odd one left where the width is odd.
  const int64_t left = side < 0 ? 0 : side > 0 ? total : total / 2 + (total & width & 1);
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += text;
  for (int64_t i = left; i < total; ++i) out += fill;
  return out;
}

}  // namespace trainwright::jinja
