// What the objective tells of steps that nobody takes: the longest texts, and what ranks give each other.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/model/small_models.h"
#include "tests/objective/grit_texts.h"

namespace trainwright {
namespace {

using test::GritOf;

OwnOptions WithLengths(OwnOptions more) {
  more.emplace("query_max_len", 10);
  more.emplace("passage_max_len", 20);
  more.emplace("generative_max_len", 30);
  more.emplace("group_size", 3);
  return more;
}

StepWork LongestWork(const OwnOptions& own, int64_t samples, int64_t text_tokens) {
  const auto objective = GritOf(WithLengths(own));
  return objective->WorkOf(objective->LongestBatch(samples, text_tokens), test::SmallLlama());
}

TEST(GritPaper, TheLongestTextsAreAsLongAsTheirOptionsSay) {
  const StepWork embedding = LongestWork({{"mode", "embedding"}}, 4, 1000);
  EXPECT_EQ(embedding.tokens, 4 * (10 + 3 * 20));
  EXPECT_EQ(embedding.texts, (TextCounts{.queries = 4, .passages = 12}));
  const StepWork unified = LongestWork({{"mode", "unified"}, {"companion_every", 2}}, 4, 1000);
  EXPECT_EQ(unified.tokens, 4 * (10 + 3 * 20) + 2 * 30);
  EXPECT_EQ(unified.texts.generative_rows, 2);
  const StepWork generative = LongestWork({{"mode", "generative"}}, 4, 1000);
  EXPECT_EQ(generative.tokens, 4 * 30);
  EXPECT_EQ(generative.labels, 4 * 29) << "the first token of a row follows none";
  EXPECT_EQ(LongestWork({{"mode", "unified"}}, 2, 15).tokens, 2 * (10 + 3 * 15 + 15)) << "or shorter";
}

TEST(GritPaper, WhatIsComputedTwiceAreTheTexts) {
  const auto again = [](OwnOptions own) {
    own.emplace("mode", "unified");
    const auto objective = GritOf(WithLengths(std::move(own)));
    return objective->ForwardAgain(objective->LongestBatch(4, 1000), test::SmallLlama()).tokens;
  };
  EXPECT_EQ(again({}), 4 * (10 + 3 * 20));
  EXPECT_EQ(again({{"no_emb_gas", "on"}}), 0);
  EXPECT_EQ(again({{"negatives", "micro-batch"}}), 0);
}

TEST(GritPaper, RanksGiveEachOtherTheirVectors) {
  const ModelConfig model = test::SmallLlama();
  const StepShape shape = {.samples_of_rank = 8, .samples_of_step = 32, .ranks = 4, .micro_batch = 2};
  const auto bytes = [&](OwnOptions own) {
    own.emplace("mode", "embedding");
    const std::vector<int64_t> gathers = GritOf(WithLengths(std::move(own)))->GatheredBytes(shape, model);
    return std::accumulate(gathers.begin(), gathers.end(), int64_t{0});
  };
  const int64_t texts = 8 * (1 + 3);
  EXPECT_GE(bytes({}), texts * model.hidden_size * 4);
  EXPECT_EQ(bytes({{"projection", 100}}) - bytes({{"projection", 60}}), texts * 40 * 4);
  EXPECT_GT(bytes({{"symmetric", "on"}}), bytes({}));
  EXPECT_EQ(bytes({{"negatives", "rank"}}), 0);
  const StepShape alone = {.samples_of_rank = 8, .samples_of_step = 8};
  EXPECT_TRUE(GritOf({{"mode", "embedding"}})->GatheredBytes(alone, model).empty());
}

}  // namespace
}  // namespace trainwright
