#include "lib/score/answer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

bool IsDigit(char letter) {
  return letter >= '0' && letter <= '9';
}

bool IsWordLetter(char letter) {
  return IsDigit(letter) || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
}

size_t DigitsAt(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && IsDigit(text[end])) ++end;
  return end - at;
}

/// Removes the sign of a number from the end of what stands before it, also one before a dollar sign, plain
/// or escaped. After a letter or a digit it is a dash, and stays.
/// \returns whether it was there
bool RemoveMinus(std::string_view* before) {
  std::string_view rest = *before;
  if (rest.ends_with('$')) {
    rest.remove_suffix(1);
    if (rest.ends_with('\\')) rest.remove_suffix(1);
  }
  for (const std::string_view minus : {"-", "\xE2\x88\x92"}) {  // ASCII's, and U+2212 of typeset text
    if (!rest.ends_with(minus)) continue;
    rest.remove_suffix(minus.size());
    if (!rest.empty() && IsWordLetter(rest.back())) return false;
    *before = rest;
    return true;
  }
  return false;
}

/// Removes the beginning of a fraction of LaTeX from the end of what stands before its numerator.
/// \returns whether it was there
bool RemoveFraction(std::string_view* before) {
  for (const std::string_view command : {"\\frac{", "\\dfrac{", "\\tfrac{"}) {
    if (!before->ends_with(command)) continue;
    before->remove_suffix(command.size());
    return true;
  }
  return false;
}

/// The size of what parts groups of three digits: a comma, or what LaTeX has for it; 0: none.
size_t GroupMarkAt(std::string_view text, size_t at) {
  for (const std::string_view mark : {"{,}", ",\\!", ","}) {
    if (text.substr(at).starts_with(mark)) return mark.size();
  }
  return 0;
}

/// The number without a sign that begins at `at`, which moves behind it, as from_chars reads it.
std::string TakeNumber(std::string_view text, size_t* at) {
  size_t end = *at + DigitsAt(text, *at);
  std::string number(text.substr(*at, end - *at));
  // 1,234,567: only where each comma has a group of exactly three digits behind it.
  if (!number.empty() && number.size() <= 3) {
    for (size_t mark = GroupMarkAt(text, end); mark > 0 && DigitsAt(text, end + mark) == 3;
         mark = GroupMarkAt(text, end)) {
      number += text.substr(end + mark, 3);
      end += mark + 3;
    }
  }
  if (end < text.size() && text[end] == '.' && DigitsAt(text, end + 1) > 0) {
    const size_t digits = DigitsAt(text, end + 1);
    number += text.substr(end, 1 + digits);
    end += 1 + digits;
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    const size_t sign = end + 1 < text.size() && (text[end + 1] == '-' || text[end + 1] == '+') ? 1 : 0;
    const size_t digits = DigitsAt(text, end + 1 + sign);
    if (digits > 0) {
      number += text.substr(end, 1 + sign + digits);
      end += 1 + sign + digits;
    }
  }
  *at = end;
  return number;
}

double ValueOf(const std::string& number) {
  double value = 0;
  const auto result = std::from_chars(number.data(), number.data() + number.size(), value);
  return result.ec == std::errc() && std::isfinite(value) ? value : kNone;
}

/// What the number that ends at `at` is divided by; 1 where it is no numerator, as of the date 5/8/2020.
/// \param in_fraction whether it is that of a fraction of LaTeX
double DivisorAt(std::string_view text, size_t at, bool in_fraction) {
  const std::string_view bar = in_fraction ? "}{" : "/";
  if (!text.substr(at).starts_with(bar)) return 1;
  size_t end = at + bar.size();
  if (DigitsAt(text, end) == 0) return 1;
  const double divisor = ValueOf(TakeNumber(text, &end));
  const std::string_view rest = text.substr(end);
  const bool is_fraction =
      in_fraction ? rest.starts_with('}') : !(rest.starts_with('/') && DigitsAt(rest, 1) > 0);
  return is_fraction && divisor > 0 ? divisor : 1;
}

double RoundToThousandths(double value) {
  constexpr double kAllWhole = 1LL << 53;  // from here on; a thousand times as much may be beyond the range
  return std::abs(value) < kAllWhole ? std::round(value * 1000) / 1000 : value;
}

}  // namespace

AnswerFormat ParseAnswerFormat(const std::string& name) {
  for (const AnswerFormat format : {AnswerFormat::kTag, AnswerFormat::kGsm8k, AnswerFormat::kAuto}) {
    if (name == NameOf(format)) return format;
  }
  throw Error(ErrorCode::kUsage, "--answer-format", "unknown choice \"" + name + "\"", "",
              "one of tag, gsm8k, auto");
}

const char* NameOf(AnswerFormat format) {
  switch (format) {
    case AnswerFormat::kTag:
      return "tag";
    case AnswerFormat::kGsm8k:
      return "gsm8k";
    case AnswerFormat::kAuto:
      return "auto";
  }
  return "";
}

double FirstNumber(std::string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    const bool point = text[at] == '.' && at + 1 < text.size() && IsDigit(text[at + 1]);
    if (!IsDigit(text[at]) && !point) continue;
    std::string_view before = text.substr(0, at);
    bool is_negative = RemoveMinus(&before);
    const bool in_fraction = RemoveFraction(&before);
    if (in_fraction && RemoveMinus(&before)) is_negative = !is_negative;
    size_t end = at;
    const double value = ValueOf(TakeNumber(text, &end)) / DivisorAt(text, end, in_fraction);
    return is_negative ? -value : value;
  }
  return kNone;
}

double ParseAnswer(std::string_view text, AnswerFormat format) {
  constexpr std::string_view kOpen = "<answer>", kClose = "</answer>", kGsm8kMark = "####";
  const size_t open = text.find(kOpen);
  const size_t mark = text.rfind(kGsm8kMark);
  if (format == AnswerFormat::kGsm8k ||
      (format == AnswerFormat::kAuto && open == std::string_view::npos && mark != std::string_view::npos)) {
    return mark == std::string_view::npos ? kNone : FirstNumber(text.substr(mark + kGsm8kMark.size()));
  }
  if (open == std::string_view::npos) return FirstNumber(text);
  const std::string_view rest = text.substr(open + kOpen.size());
  return FirstNumber(rest.substr(0, std::min(rest.find(kClose), rest.size())));
}

bool IsValidAnswer(double answer, double gold) {
  if (!std::isfinite(answer) || !std::isfinite(gold)) return false;
  const double rounded = RoundToThousandths(gold);
  const double difference = std::abs(RoundToThousandths(answer) - rounded);
  return rounded == 0 ? difference < 0.001 : difference < 0.05 * std::abs(rounded);
}

bool IsStrictlyValidAnswer(double answer, double gold) {
  if (!std::isfinite(answer) || !std::isfinite(gold)) return false;
  const double difference = std::abs(answer - gold);
  return std::abs(gold) < 1e-6 ? difference <= 1e-6 : difference <= 1e-3 * std::abs(gold);
}

WilsonInterval WilsonIntervalOf(uint64_t successes, uint64_t n, double z) {
  TRAINWRIGHT_CHECK(successes <= n);
  if (n == 0) return {};
  const auto trials = static_cast<double>(n);
  const double share = static_cast<double>(successes) / trials;
  const double shrink = 1 + z * z / trials;
  const double centre = (share + z * z / (2 * trials)) / shrink;
  const double half = z / shrink * std::sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials));
  // The ends are exact where the share is 0 or 1, and rounding would miss them.
  return {successes == 0 ? 0 : std::max(0.0, centre - half),
          successes == n ? 1 : std::min(1.0, centre + half)};
}

}  // namespace trainwright
