/// Numbers that a model answers with, and whether they are right.
///
/// Pure and thread-safe: the scorer of `evaluate --metric answers` and whatever keeps or rejects samples
/// share them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trainwright {

enum class AnswerFormat : uint8_t {
  kTag,  ///< the number between <answer> and </answer>, or to the end; without a tag the text's first number
  kGsm8k,  ///< the number after the last "####"; without it there is none
  kAuto,   ///< kTag when there is a tag, else kGsm8k when there is a "####", else the text's first number
};

/// \throws Error{kUsage} naming --answer-format
AnswerFormat ParseAnswerFormat(const std::string& name);
const char* NameOf(AnswerFormat format);

/// The first signed number of a text: "-3", "-$3", "2.5", ".5", "1e-3", "1,234.5" (commas between groups of
/// three digits), "3/4" (which is 0.75; a date like 5/8/2020 is 5). Fractions and commas may be those of
/// LaTeX. A sign counts where no letter or digit is before it. Not a number when there is none, and for
/// numbers beyond a double's range.
double FirstNumber(std::string_view text);

/// What a text answers; not a number when it answers nothing, which no rule takes for 0.
double ParseAnswer(std::string_view text, AnswerFormat format);

/// Within 5 % of the gold answer, both rounded to three decimals; for one that is 0 then, within 0.001.
/// Lenient on purpose: the rule that rejection fine-tuning keeps samples by.
bool IsValidAnswer(double answer, double gold);
/// Within a relative 1e-3 of the gold answer; for a gold answer of 0, within 1e-6.
bool IsStrictlyValidAnswer(double answer, double gold);

/// A share of `n` trials with its Wilson score interval.
/// \source E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927, eq. 4
struct WilsonInterval {
  double low = 0, high = 1;
};
/// \param z quantile of the normal distribution; the default is that of 95 %
/// \returns [0, 1] when n is 0
WilsonInterval WilsonIntervalOf(uint64_t successes, uint64_t n, double z = 1.959963984540054);

}  // namespace trainwright
