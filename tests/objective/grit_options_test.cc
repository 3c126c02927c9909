// What the own options of grit mean.
#include "lib/objective/grit_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/embedding/similarity.h"
#include "tests/model/small_models.h"
#include "tests/objective/grit_texts.h"
#include "tests/support/memory_shard_set.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::GritOf;

GritOptions OptionsOf(const OwnOptions& own) {
  return GritOf(own)->options();
}

TEST(GritOptions, WithoutMoreAreThoseOfTheOriginalsTraining) {
  const GritOptions options = OptionsOf({});
  EXPECT_TRUE(options.embeds());
  EXPECT_FALSE(options.generates());
  EXPECT_EQ(options.contrastive.temperature, 0.02);
  EXPECT_TRUE(options.contrastive.normalize);
  EXPECT_EQ(options.data.query_tokens, 32);
  EXPECT_EQ(options.data.passage_tokens, 128);
  EXPECT_EQ(options.data.generative_tokens, 128);
  EXPECT_EQ(options.data.choice.positives, 1u);
  EXPECT_EQ(options.data.choice.negatives, 1u);
  EXPECT_EQ(options.pooling, Pooling::kMean);
  EXPECT_EQ(options.mask, AttentionMask::kBidirectional);
  EXPECT_EQ(options.negatives, NegativesOf::kStep);
  EXPECT_FALSE(options.divides_by_ranks);
  EXPECT_FALSE(options.rounds_vectors);
}

TEST(GritOptions, OfAModelsFolderMakeItsVectors) {
  EmbeddingSpec spec;
  spec.pooling = Pooling::kLastToken;
  spec.mask = AttentionMask::kCausal;
  spec.attention = "cc";
  spec.normalize = false;
  spec.similarity = Similarity::kDot;
  spec.projection = 16;
  spec.query_max_len = 300;
  spec.passage_max_len = 4096;
  EXPECT_EQ(EmbeddingSpecOf(OptionsOf(GritOwnOptionsOf(spec))), spec);
}

// Training scores vectors by their products.
TEST(GritOptions, AModelWhoseVectorsKeepTheirLengthsComparesThemByTheirProducts) {
  EXPECT_EQ(EmbeddingSpecOf(OptionsOf({{"normalize", "off"}})).similarity, Similarity::kDot);
  EXPECT_EQ(EmbeddingSpecOf(OptionsOf({{"normalize", "on"}})).similarity, Similarity::kCosine);
}

TEST(GritOptions, RowsAreAsLongAsPassagesUnlessTheySayOtherwise) {
  EXPECT_EQ(OptionsOf({{"mode", "unified"}, {"passage_max_len", 77}}).data.generative_tokens, 77);
  EXPECT_EQ(OptionsOf({{"mode", "unified"}, {"generative_max_len", 99}}).data.generative_tokens, 99);
}

TEST(GritOptions, SizesHaveTheirWeights) {
  const GritOptions plain = OptionsOf({{"matryoshka", "16,48"}}),
                    weighted = OptionsOf({{"matryoshka", "16,48"}, {"matryoshka_weights", "0.5,2"}});
  ASSERT_EQ(plain.contrastive.sizes.size(), 2u);
  EXPECT_EQ(plain.contrastive.sizes[1].columns, 48);
  EXPECT_EQ(plain.contrastive.sizes[1].weight, 1);
  EXPECT_EQ(weighted.contrastive.sizes[0].weight, 0.5);
  EXPECT_EQ(weighted.contrastive.sizes[1].weight, 2);
}

TEST(GritOptions, ListsAndNumbersOfAnotherFormAreRefused) {
  const std::vector<OwnOptions> wrong = {{{"matryoshka", "16,,48"}},
                                         {{"matryoshka", "16,x"}},
                                         {{"matryoshka", "0"}},
                                         {{"matryoshka", "16"}, {"matryoshka_weights", "1,2"}},
                                         {{"matryoshka", "16"}, {"matryoshka_weights", "-1"}},
                                         {{"positives", "some"}},
                                         {{"positives", 0}},
                                         {{"temperature", 0}},
                                         {{"temperature", -0.1}},
                                         {{"pooling", "max"}}};
  for (const OwnOptions& own : wrong) {
    EXPECT_EQ(test::CodeOf([&] { OptionsOf(own); }), ErrorCode::kUsage) << testing::PrintToString(own);
  }
}

TEST(GritOptions, AllPositivesAreTakenOrSoMany) {
  EXPECT_EQ(OptionsOf({{"positives", "all"}}).data.choice.positives, 0u);
  EXPECT_EQ(OptionsOf({{"positives", 3}}).data.choice.positives, 3u);
}

TEST(GritObjective, TellsTheTermsOfItsMode) {
  const auto names = [](const char* mode) {
    const auto objective = GritOf({{"mode", mode}});
    std::vector<std::string> names;
    for (const LossTerm& term : objective->terms()) names.push_back(term.name);
    return names;
  };
  EXPECT_EQ(names("embedding"), (std::vector<std::string>{"loss_emb_nats", "in_batch_top1"}));
  EXPECT_EQ(names("generative"), (std::vector<std::string>{"loss_gen_nats"}));
  EXPECT_EQ(names("unified"), (std::vector<std::string>{"loss_emb_nats", "in_batch_top1", "loss_gen_nats"}));
}

TEST(GritObjective, ItsLossIsTheSumOfBothToTheLastBit) {
  const auto loss = [](const char* mode, const std::vector<double>& means) {
    return test::GritOf({{"mode", mode}})->Loss(means);
  };
  constexpr double kEmbedding = 1.1, kTop1 = 0.3, kGenerative = 2.3;
  const volatile double sum = kEmbedding + kGenerative;  // rounded to a double
  EXPECT_EQ(loss("unified", {kEmbedding, kTop1, kGenerative}), sum);
  EXPECT_EQ(loss("embedding", {kEmbedding, kTop1}), kEmbedding);
  EXPECT_EQ(loss("generative", {kGenerative}), kGenerative);
}

TEST(GritObjective, CountsWhatPaddingWouldCompute) {
  // Queries of 2, 3 and 4 tokens.
  const PackedBatch batch = test::GritBatchOf({.vocabulary = 50, .queries = 3}, 0, 3);
  const StepWork work = GritOf({})->WorkOf(batch, test::SmallLlama());
  EXPECT_EQ(work.tokens, batch.num_tokens());
  EXPECT_EQ(work.labels, 3);
  int64_t longest = 0, passages = 0;
  for (size_t span = 0; span < batch.notes.size(); ++span) {
    if (batch.notes[span].use == TextUse::kQuery) continue;
    longest = std::max<int64_t>(longest, batch.span_starts[span + 1] - batch.span_starts[span]);
    ++passages;
  }
  EXPECT_EQ(work.tokens_if_padded, 3 * 4 + passages * longest);
}

TEST(GritObjective, CountsTextsByWhatTheyAreFor) {
  // Of records 0 to 4 the fourth has two positives; they have 0, 1, 2, 0 and 1 negatives.
  const PackedBatch batch = test::GritBatchOf({.vocabulary = 50, .queries = 5, .every_row = 2}, 0, 5);
  const TextCounts texts = GritOf({{"mode", "unified"}})->WorkOf(batch, test::SmallLlama()).texts;
  EXPECT_EQ(texts, (TextCounts{.queries = 5, .passages = 6 + 4, .generative_rows = 3}));
}

TEST(GritObjective, BothWaysEveryTokenSeesEachOfItsText) {
  const PackedBatch batch = test::GritBatchOf({.vocabulary = 50, .queries = 4, .every_row = 2}, 0, 4);
  int64_t both_ways = 0, backwards = 0;
  for (size_t span = 0; span < batch.notes.size(); ++span) {
    const int64_t length = batch.span_starts[span + 1] - batch.span_starts[span];
    backwards += length * (length + 1) / 2;
    both_ways += batch.notes[span].use == TextUse::kGenerative ? length * (length + 1) / 2 : length * length;
  }
  const OwnOptions both = {{"mode", "unified"}}, causal = {{"mode", "unified"}, {"attn", "cccc"}};
  EXPECT_EQ(GritOf(both)->WorkOf(batch, test::SmallLlama()).attention_pairs, both_ways);
  EXPECT_EQ(GritOf(causal)->WorkOf(batch, test::SmallLlama()).attention_pairs, backwards);
}

TEST(GritObjective, SaysHowTheModelMakesVectors) {
  const test::MemoryShardSet set({}, 2, 50, RecordKind::kContrastive);
  const auto spec = GritOf({{"pooling", "lasttoken"}, {"attn", "cc"}, {"projection", 16}})->EmbeddingOf(set);
  ASSERT_TRUE(spec.has_value());
  EXPECT_EQ(spec->pooling, Pooling::kLastToken);
  EXPECT_EQ(spec->attention, "cc");
  EXPECT_EQ(spec->mask, AttentionMask::kCausal);
  EXPECT_EQ(spec->projection, 16);
  EXPECT_FALSE(GritOf({{"mode", "generative"}})->EmbeddingOf(set).has_value());
}

/// Of a step in micro-batches of 16, on so many ranks.
int64_t HeldBytesOf(const OwnOptions& own, int64_t samples, int64_t ranks) {
  ModelConfig model = test::SmallLlama();
  model.hidden_size = 384;
  return GritOf(own)->HeldBytes(
      {.samples_of_rank = samples / ranks, .samples_of_step = samples, .ranks = ranks, .micro_batch = 16},
      model);
}

TEST(GritObjective, KeepsVectorsAndATileHoweverLargeTheStep) {
  constexpr int64_t kTile = int64_t{32} << 20;
  const int64_t vectors = 16384 * 3 * 384 * 4;
  const int64_t held = HeldBytesOf({}, 16384, 1);
  EXPECT_GE(held, kTile + 2 * vectors);
  EXPECT_LE(held, kTile + 3 * vectors);
  EXPECT_LT(HeldBytesOf({}, 16384, 4), held);
  EXPECT_LT(HeldBytesOf({{"negatives", "micro-batch"}}, 16384, 1), kTile + (1 << 20));
  EXPECT_EQ(HeldBytesOf({{"mode", "generative"}}, 16384, 1), 0);
}

}  // namespace
}  // namespace trainwright
