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
    std::string number;
    if (at > 0 && text[at - 1] == '-' && (at < 2 || !IsWordLetter(text[at - 2]))) number = "-";
    size_t end = at + DigitsAt(text, at);
    number += text.substr(at, end - at);
    // 1,234,567: only where each comma has a group of exactly three digits behind it.
    if (end - at >= 1 && end - at <= 3) {
      while (end < text.size() && text[end] == ',' && DigitsAt(text, end + 1) == 3) {
        number += text.substr(end + 1, 3);
        end += 4;
      }
    }
    if (end < text.size() && text[end] == '.' && (DigitsAt(text, end + 1) > 0)) {
      const size_t digits = DigitsAt(text, end + 1);
      number += text.substr(end, 1 + digits);
      end += 1 + digits;
    }
    if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
      const size_t sign = end + 1 < text.size() && (text[end + 1] == '-' || text[end + 1] == '+') ? 1 : 0;
      const size_t digits = DigitsAt(text, end + 1 + sign);
      if (digits > 0) number += text.substr(end, 1 + sign + digits);
    }
    if (const size_t plus = number.find('+'); plus != std::string::npos) number.erase(plus, 1);
    double value = 0;
    const auto result = std::from_chars(number.data(), number.data() + number.size(), value);
    return result.ec == std::errc() && std::isfinite(value) ? value : kNone;
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
