#include "lib/score/answer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "lib/score/answers_job.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

constexpr AnswerFormat kTag = AnswerFormat::kTag, kGsm8k = AnswerFormat::kGsm8k, kAuto = AnswerFormat::kAuto;

TEST(AnswerTest, TheFirstNumberOfATextIsRead) {
  EXPECT_EQ(FirstNumber("6000"), 6000);
  EXPECT_EQ(FirstNumber("about -2.5 m"), -2.5);
  EXPECT_EQ(FirstNumber("x=.5"), 0.5);
  EXPECT_EQ(FirstNumber("+3"), 3);
  EXPECT_EQ(FirstNumber("1,234,567.25"), 1234567.25);
  EXPECT_EQ(FirstNumber("1,23"), 1) << "no group of thousands";
  EXPECT_EQ(FirstNumber("12345,678"), 12345) << "no group of thousands";
  EXPECT_EQ(FirstNumber("1e-3 and 5"), 0.001);
  EXPECT_EQ(FirstNumber("2E+2"), 200);
  EXPECT_EQ(FirstNumber("7."), 7);
  EXPECT_EQ(FirstNumber("5-3"), 5);
  EXPECT_EQ(FirstNumber("a-3"), 3) << "a dash inside a word is no sign";
  EXPECT_EQ(FirstNumber("3 eggs"), 3);
  for (const char* none : {"", "none", "-", ".", "nan", "inf", "-infinity", "1e999"}) {
    EXPECT_TRUE(std::isnan(FirstNumber(none))) << none;
  }
}

TEST(AnswerTest, ASignCountsBeforeADollarSignAndAsItIsTypeset) {
  EXPECT_EQ(FirstNumber("-$5"), -5);
  EXPECT_EQ(FirstNumber("a loss of -\\$1,200.50"), -1200.5);
  EXPECT_EQ(FirstNumber("$-5$"), -5);
  EXPECT_EQ(FirstNumber("x = \u22127"), -7);
  EXPECT_EQ(FirstNumber("sub-$5"), 5) << "a dash inside a word is no sign";
  EXPECT_EQ(FirstNumber("\\$5"), 5);
}

TEST(AnswerTest, ThousandsArePartedAsLatexPartsThem) {
  EXPECT_EQ(FirstNumber("\\boxed{10,\\!080}"), 10080);
  EXPECT_EQ(FirstNumber("1{,}234{,}567.5"), 1234567.5);
  EXPECT_EQ(FirstNumber("f{1{,}23}"), 1) << "no group of thousands";
}

TEST(AnswerTest, AFractionIsItsQuotient) {
  EXPECT_EQ(FirstNumber("3/4 of them"), 0.75);
  EXPECT_EQ(FirstNumber("-1/2."), -0.5);
  EXPECT_EQ(FirstNumber("1/1,000"), 0.001);
  EXPECT_EQ(FirstNumber("\\boxed{\\frac{3}{4}}"), 0.75);
  EXPECT_EQ(FirstNumber("-\\dfrac{1}{8}"), -0.125);
  EXPECT_EQ(FirstNumber("\\tfrac{-1}{2}"), -0.5);
  EXPECT_EQ(FirstNumber("5/8/2020"), 5) << "a date";
  EXPECT_EQ(FirstNumber("3/0"), 3) << "no quotient";
  EXPECT_EQ(FirstNumber("60/hour"), 60);
  EXPECT_EQ(FirstNumber("\\frac{3}{x}"), 3);
}

TEST(AnswerTest, IsReadAsItsFormatSays) {
  EXPECT_EQ(ParseAnswer("1 kg = 1000 g. <answer>6000</answer> 7", kTag), 6000);
  EXPECT_EQ(ParseAnswer("<answer> 6,000 g</answer>", kTag), 6000);
  EXPECT_EQ(ParseAnswer("9 <answer>-1.5", kTag), -1.5) << "cut off before its end";
  EXPECT_EQ(ParseAnswer("it is 42 or 43", kTag), 42) << "no tag: the first number";
  EXPECT_TRUE(std::isnan(ParseAnswer("9 <answer>none</answer> 8", kTag)))
      << "a tag without a number is no answer";
  EXPECT_TRUE(std::isnan(ParseAnswer("9 <answer></answer> 8", kTag)));
  EXPECT_EQ(ParseAnswer("<answer>1</answer><answer>2</answer>", kTag), 1);
  EXPECT_EQ(ParseAnswer("48/2 = 24\n#### 72", kGsm8k), 72);
  EXPECT_EQ(ParseAnswer("#### 1 \n#### $1,200", kGsm8k), 1200);
  EXPECT_TRUE(std::isnan(ParseAnswer("48/2 = 24", kGsm8k)));
  EXPECT_EQ(ParseAnswer("3 #### 72", kAuto), 72);
  EXPECT_EQ(ParseAnswer("3 #### 72 <answer>5</answer>", kAuto), 5);
  EXPECT_EQ(ParseAnswer("3 apples", kAuto), 3);
  EXPECT_TRUE(std::isnan(ParseAnswer("", kAuto)));
}

TEST(AnswerTest, ValidityIsWithinFivePercentOfTheRoundedGoldAnswer) {
  EXPECT_TRUE(IsValidAnswer(104.9, 100));
  EXPECT_FALSE(IsValidAnswer(105, 100)) << "the bound itself is outside";
  EXPECT_TRUE(IsValidAnswer(95.1, 100));
  EXPECT_FALSE(IsValidAnswer(-100, 100));
  EXPECT_TRUE(IsValidAnswer(1e308, 1e308)) << "a thousand times as much is beyond the range";
  EXPECT_TRUE(IsValidAnswer(0.0004, 0)) << "rounds to 0";
  EXPECT_FALSE(IsValidAnswer(0.0006, 0)) << "rounds to 0.001";
  EXPECT_FALSE(IsValidAnswer(0.01, 0.0004)) << "the gold answer rounds to 0, of which 5 % are nothing";
  EXPECT_FALSE(IsValidAnswer(std::nan(""), 0));
  EXPECT_FALSE(IsValidAnswer(INFINITY, 100));
  EXPECT_FALSE(IsValidAnswer(1, std::nan("")));
  EXPECT_TRUE(IsStrictlyValidAnswer(100.09, 100));
  EXPECT_FALSE(IsStrictlyValidAnswer(100.2, 100));
  EXPECT_FALSE(IsStrictlyValidAnswer(0.001, 0));
  EXPECT_FALSE(IsStrictlyValidAnswer(std::nan(""), 0));
}

TEST(AnswerTest, AnExactAnswerIsValidWhereTheGoldOneRoundsToZero) {
  for (const double gold : {0.0004, -0.0004, 1e-9, 0.0}) {
    EXPECT_TRUE(IsValidAnswer(gold, gold)) << gold;
    EXPECT_TRUE(IsValidAnswer(-gold, gold)) << "both round to 0";
    EXPECT_FALSE(IsValidAnswer(0.001, gold)) << gold;
  }
}

/// The interval holds the shares p that a test at level z does not reject: |k/n - p| = z sqrt(p (1 - p) / n)
/// at its ends. Found by bisection, without the closed form.
double EndByBisection(double share, double n, double z, bool low) {
  const auto rejected = [&](double p) { return std::abs(share - p) > z * std::sqrt(p * (1 - p) / n); };
  double outside = low ? 0 : 1, inside = share;
  for (int i = 0; i < 200; ++i) {
    const double middle = (outside + inside) / 2;
    (rejected(middle) ? outside : inside) = middle;
  }
  return inside;
}

TEST(WilsonIntervalTest, EndsWhereTheScoreTestBeginsToReject) {
  for (const uint64_t n : {1u, 5u, 100u, 1000u}) {
    for (const double share : {0.1, 0.37, 0.5, 0.9}) {
      const auto k = static_cast<uint64_t>(share * static_cast<double>(n));
      if (k == 0) continue;
      for (const double z : {1.0, 1.959963984540054}) {
        const WilsonInterval interval = WilsonIntervalOf(k, n, z);
        const double found = static_cast<double>(k) / static_cast<double>(n);
        EXPECT_NEAR(interval.low, EndByBisection(found, static_cast<double>(n), z, true), 1e-12);
        EXPECT_NEAR(interval.high, EndByBisection(found, static_cast<double>(n), z, false), 1e-12);
      }
    }
  }
  // Of nothing known nothing is said; of no success at all the upper end is z^2 / (n + z^2).
  EXPECT_EQ(WilsonIntervalOf(0, 0).low, 0);
  EXPECT_EQ(WilsonIntervalOf(0, 0).high, 1);
  EXPECT_EQ(WilsonIntervalOf(0, 10, 2).low, 0);
  EXPECT_DOUBLE_EQ(WilsonIntervalOf(0, 10, 2).high, 4.0 / 14);
  EXPECT_EQ(WilsonIntervalOf(10, 10, 2).high, 1);
  EXPECT_DOUBLE_EQ(WilsonIntervalOf(10, 10, 2).low, 10.0 / 14);
}

class AnswersJobTest : public testing::Test {
 protected:
  nlohmann::ordered_json Score(const std::string& samples, const std::string& gold,
                               AnswerFormat format = kAuto) {
    test::WriteFile(folder_.path("samples"), samples);
    test::WriteFile(folder_.path("gold"), gold);
    return RunAnswers({folder_.path("samples"), folder_.path("gold"), format});
  }
  std::string MessageOf(const std::string& samples, const std::string& gold) {
    return test::MessageOf([&] { Score(samples, gold); });
  }

  const test::TemporaryFolder folder_;
  const std::string gold_ = R"({"prompt":"a? ","gold":100})"
                            "\n"
                            R"({"question":"b?","answer":"so 3 <answer>0</answer>"})"
                            "\n\n"
                            R"({"question":"c?","answer":"#### 1,000"})"
                            "\n";
};

TEST_F(AnswersJobTest, SamplesAreScoredByTheFirstOfEachQuestion) {
  const auto result =
      Score(R"({"prompt":"a? ","text":"<answer>103</answer>","ids":[1],"sample":0,"finish":"eos"})"
            "\n"
            R"({"prompt":"a? ","text":"<answer>100</answer>","sample":1})"
            "\n"
            R"({"prompt":"b?","text":"no idea","sample":0})"
            "\n"
            R"({"prompt":"c?","text":"1000","sample":0})"
            "\n"
            R"({"prompt":"c?","text":"2","sample":1})"
            "\n",
            gold_);
  EXPECT_EQ(result.at("n"), 3);
  EXPECT_DOUBLE_EQ(result.at("accuracy").get<double>(), 2.0 / 3);
  EXPECT_DOUBLE_EQ(result.at("strict_accuracy").get<double>(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(result.at("exact_accuracy").get<double>(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(result.at("answer_rate").get<double>(), 2.0 / 3) << "'no idea' is no 0";
  EXPECT_EQ(result.at("samples"), 5);
  EXPECT_DOUBLE_EQ(result.at("sample_accuracy").get<double>(), 3.0 / 5);
  EXPECT_DOUBLE_EQ(result.at("any_valid").get<double>(), 2.0 / 3);
  EXPECT_EQ(result.at("missing"), 0);
  EXPECT_DOUBLE_EQ(result.at("accuracy_interval")[0].get<double>(), WilsonIntervalOf(2, 3).low);
}

TEST_F(AnswersJobTest, QuestionsWithoutASampleAreNotAnswered) {
  const auto result = Score("{\"prompt\":\"a?\",\"text\":\"100\"}\n", gold_);
  EXPECT_EQ(result.at("missing"), 2);
  EXPECT_DOUBLE_EQ(result.at("accuracy").get<double>(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(result.at("answer_rate").get<double>(), 1.0 / 3);
  EXPECT_EQ(Score("", gold_).at("accuracy"), 0.0);
}

TEST_F(AnswersJobTest, WhatDoesNotFitIsNamedWithItsLine) {
  using std::string;
  const auto names = [](const string& message, const string& part) {
    return message.find(part) != string::npos;
  };
  const string sound = "{\"prompt\":\"a?\",\"text\":\"1\"}\n";
  EXPECT_TRUE(names(MessageOf(sound + "{\"prompt\":\"z?\",\"text\":\"1\"}\n", gold_), "line 2"));
  EXPECT_TRUE(names(MessageOf(sound + sound, gold_), "came before"));
  EXPECT_TRUE(names(MessageOf("{\"prompt\":\"a?\"}\n", gold_), "no \"text\""));
  EXPECT_TRUE(names(MessageOf("{\"prompt\":\"a?\",\"text\":3}\n", gold_), "not a string"));
  EXPECT_TRUE(names(MessageOf("nonsense\n", gold_), "line 1"));
  EXPECT_TRUE(names(MessageOf(sound, gold_ + "{\"prompt\":\"a?\",\"gold\":7}\n"), "another answer"));
  EXPECT_TRUE(names(MessageOf(sound, "{\"prompt\":\"a?\",\"gold\":\"none\"}\n"), "holds no number"));
  EXPECT_TRUE(names(MessageOf(sound, "{\"prompt\":\"a?\"}\n"), "\"gold\" or \"answer\""));
  EXPECT_TRUE(names(MessageOf(sound, ""), "no gold answers"));
  test::WriteFile(folder_.path("gold"), gold_);
  EXPECT_EQ(test::CodeOf([&] {
              RunAnswers({folder_.path("absent"), folder_.path("gold"), kAuto});
            }),
            ErrorCode::kIo);
}

}  // namespace
}  // namespace trainwright
