#include "lib/score/sample_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using testing::ElementsAre;

class SampleFilterTest : public testing::Test {
 protected:
  /// Which of the texts, samples of the one question of the gold file (its answer is 60), are kept.
  std::vector<size_t> Kept(KeepRule rule, KeepWhich which, const std::vector<std::string>& texts,
                           AnswerFormat format = AnswerFormat::kAuto) {
    test::WriteFile(folder_.path("gold"), "{\"prompt\": \"How many s in a min? \", \"gold\": 60}\n");
    SampleFilter filter({rule, which, format, rule == KeepRule::kAnswered ? "" : folder_.path("gold")});
    std::vector<size_t> kept;
    for (size_t i = 0; i < texts.size(); ++i) {
      if (filter.Keep(0, "How many s in a min?", texts[i])) kept.push_back(i);
    }
    return kept;
  }
  test::TemporaryFolder folder_;
};

TEST_F(SampleFilterTest, RulesTellAnsweredValidAndStrict) {
  const std::vector<std::string> texts = {"no idea",
                                          "<answer>7</answer>",
                                          "about <answer>61.5</answer>",
                                          "so <answer>60</answer>",
                                          "cut off <answer>60",
                                          "60 without a tag"};
  EXPECT_THAT(Kept(KeepRule::kAnswered, KeepWhich::kAll, texts), ElementsAre(1, 2, 3, 5));
  EXPECT_THAT(Kept(KeepRule::kValid, KeepWhich::kAll, texts), ElementsAre(2, 3, 5));
  EXPECT_THAT(Kept(KeepRule::kStrict, KeepWhich::kAll, texts), ElementsAre(3, 5));
  EXPECT_THAT(Kept(KeepRule::kValid, KeepWhich::kAll, texts, AnswerFormat::kTag), ElementsAre(2, 3));
}

TEST_F(SampleFilterTest, OfThoseThatPassTheFirstAllOrTheDistinctAreKept) {
  const std::vector<std::string> texts = {"1", "is 60", "is  60\n", "so 60", "is 60"};
  EXPECT_THAT(Kept(KeepRule::kValid, KeepWhich::kFirst, texts), ElementsAre(1));
  EXPECT_THAT(Kept(KeepRule::kValid, KeepWhich::kAll, texts), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Kept(KeepRule::kValid, KeepWhich::kDistinct, texts), ElementsAre(1, 3));
}

TEST_F(SampleFilterTest, CountsPromptsBySamplesThatPassed) {
  test::WriteFile(folder_.path("gold"),
                  "{\"question\": \"a\", \"answer\": \"#### 1\"}\n{\"prompt\": \"b\", \"gold\": 2}\n");
  SampleFilter filter({KeepRule::kValid, KeepWhich::kDistinct, AnswerFormat::kAuto, folder_.path("gold")});
  EXPECT_TRUE(filter.Keep(0, "a", "1"));
  EXPECT_FALSE(filter.Keep(0, "a", "1"));
  EXPECT_FALSE(filter.Keep(0, "a", "5"));
  EXPECT_FALSE(filter.Keep(1, "b", "5"));
  EXPECT_TRUE(filter.Keep(2, "b", "it is 2"));  // the same question again is another prompt
  const SampleFilter::Counts counts = filter.counts();
  EXPECT_EQ(counts.samples, 5u);
  EXPECT_EQ(counts.passed, 3u);
  EXPECT_EQ(counts.kept, 2u);
  EXPECT_EQ(counts.distinct, 2u);
  EXPECT_EQ(counts.prompts, 3u);
  EXPECT_EQ(counts.prompts_with_kept, 2u);
  EXPECT_THAT(counts.prompts_by_passed, ElementsAre(1, 1, 1));
}

TEST_F(SampleFilterTest, WhatCannotBeComparedIsRefused) {
  EXPECT_EQ(test::CodeOf([] {
              SampleFilter({KeepRule::kValid, KeepWhich::kFirst, AnswerFormat::kAuto, ""});
            }),
            ErrorCode::kUsage);
  EXPECT_EQ(test::CodeOf([&] {
              SampleFilter({KeepRule::kStrict, KeepWhich::kAll, AnswerFormat::kAuto, folder_.path("no")});
            }),
            ErrorCode::kIo);
  test::WriteFile(folder_.path("gold"), "{\"prompt\": \"a\", \"gold\": 1}\n");
  SampleFilter filter({KeepRule::kValid, KeepWhich::kFirst, AnswerFormat::kAuto, folder_.path("gold")});
  EXPECT_EQ(test::CodeOf([&] { filter.Keep(0, "unknown", "1"); }), ErrorCode::kBadInput);
}

}  // namespace
}  // namespace trainwright
