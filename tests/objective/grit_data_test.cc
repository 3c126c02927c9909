// What steps of records and rows are made of, against the sets that they are drawn from.
#include "lib/objective/grit_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/loading/joined_shard_set.h"
#include "tests/loading/text_chunks.h"
#include "tests/support/memory_shard_set.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::MemoryShardSet;

/// Records of `set` begin at 1000 times its number: which one a sample is, its query's token says.
constexpr uint32_t kSetStride = 1000;

/// Sets of `records` records each, then, if any, one of `documents` documents.
std::unique_ptr<ShardSet> SetsOf(const std::vector<uint32_t>& records, uint32_t documents = 0) {
  std::vector<NamedShardSet> sets;
  for (uint32_t s = 0; s < records.size(); ++s) {
    sets.push_back({"set-" + std::to_string(s),
                    std::make_unique<MemoryShardSet>(
                        test::ChunksOf(test::NumberedRecords(records[s], kSetStride * s, 2, 3)), 2, 1u << 30,
                        RecordKind::kContrastive)});
  }
  if (documents > 0) {
    sets.push_back({"text", std::make_unique<MemoryShardSet>(test::NumberedDocuments(documents), 3)});
  }
  return JoinShardSets(std::move(sets), UnlikeSets::kTaken);
}

uint32_t RecordOf(const Sample& sample) {
  return sample.TokensOf(sample.spans().front()).front() / test::QueryToken(1);
}

uint32_t DocumentOf(const Sample& sample) {
  return sample.TokensOf(sample.spans().front()).front();
}

std::vector<uint32_t> RecordsOf(const std::vector<Sample>& step) {
  std::vector<uint32_t> records;
  for (const Sample& sample : step) records.push_back(RecordOf(sample));
  return records;
}

/// Data with its loaders open.
struct Opened {
  Opened(const ShardSet* set, const GritDataOptions& options, int64_t step_samples)
      : data(options),
        loaders(data.Open(set, {.seed = options.seed, .window_chunks = 3, .step_samples = step_samples}, {})),
        samples(step_samples) {}
  std::vector<Sample> Step(bool drop_last = true) {
    return data.Draw(LoadersOf(loaders), samples, drop_last);
  }
  const SampleLoader& main() const { return *loaders.at(kMainLoader); }

  GritData data;
  OpenedLoaders loaders;
  int64_t samples;
};

std::vector<std::string> NamesIn(const OpenedLoaders& loaders) {
  std::vector<std::string> names;
  for (const auto& [name, loader] : loaders) names.push_back(name);
  return names;
}

constexpr bool kBoth = true;

GritDataOptions Options(bool generates = false) {
  return {.generates = generates, .seed = 7};
}

TEST(GritData, HasALoaderForEachContrastiveSetAndOneForAllOthers) {
  const auto one = SetsOf({8}), several = SetsOf({8, 9, 7}, 20), text = SetsOf({}, 20);
  EXPECT_THAT(NamesIn(Opened(one.get(), Options(), 4).loaders), testing::ElementsAre("data"));
  EXPECT_THAT(NamesIn(Opened(several.get(), Options(kBoth), 4).loaders),
              testing::ElementsAre("data", "data.2", "data.3", "generative"));
  const GritDataOptions generative = {.embeds = false, .generates = true};
  EXPECT_THAT(NamesIn(Opened(text.get(), generative, 4).loaders), testing::ElementsAre("data"));
}

TEST(GritData, RecordsThatAModeLacksAreNamed) {
  const auto records = SetsOf({8}), text = SetsOf({}, 20);
  const auto refused = [](const ShardSet& set, const GritDataOptions& options) {
    EXPECT_EQ(test::CodeOf([&] { Opened(&set, options, 4); }), ErrorCode::kBadInput);
    return test::MessageOf([&] { Opened(&set, options, 4); });
  };
  EXPECT_THAT(refused(*text, Options()), testing::HasSubstr("--data: holds no contrastive records"));
  EXPECT_THAT(refused(*records, Options(kBoth)), testing::HasSubstr("--data: holds no lm or sft records"));
}

TEST(GritData, OfOneSetEveryRecordComesOnceAnEpoch) {
  const auto set = SetsOf({23});
  Opened opened(set.get(), Options(), 1);
  std::set<uint32_t> records;
  for (int i = 0; i < 23; ++i) records.insert(RecordOf(opened.Step().front()));
  EXPECT_EQ(records.size(), 23u);
  EXPECT_EQ(opened.main().cursor().epoch, 1u);
  EXPECT_EQ(opened.main().cursor().taken, 23u);
}

TEST(GritData, StepsOfSeveralSetsComeFromOneSetEachAsFarAsTheyGo) {
  constexpr int64_t kStep = 4;
  const std::vector<uint32_t> sizes = {11, 6, 9};  // 2, 1 and 2 whole batches; of the 6 others one is mixed
  const auto set = SetsOf(sizes);
  Opened opened(set.get(), Options(), kStep);
  EXPECT_EQ(opened.main().CountEpoch().samples, 24u);
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<uint32_t> seen;
    std::map<uint32_t, int> whole;
    for (int step = 0; step < 6; ++step) {
      std::set<uint32_t> sets;
      for (const Sample& sample : opened.Step()) {
        EXPECT_TRUE(seen.insert(RecordOf(sample)).second) << "a record came twice";
        EXPECT_EQ(sample.set(), RecordOf(sample) / kSetStride);
        sets.insert(sample.set());
      }
      if (sets.size() == 1) ++whole[*sets.begin()];
    }
    EXPECT_EQ(seen.size(), 24u);
    EXPECT_GE(whole[0], 2);
    EXPECT_GE(whole[1], 1);
    EXPECT_GE(whole[2], 2);
    for (const auto& [name, loader] : opened.loaders) EXPECT_LE(loader->cursor().epoch, epoch + 1);
  }
}

TEST(GritData, GoesOnFromItsStatesAlone) {
  const auto set = SetsOf({11, 6, 9}, 31);
  GritDataOptions options = Options(kBoth);
  options.companion_every = 2;
  Opened whole(set.get(), options, 4);
  for (int step = 0; step < 20; ++step) {
    Opened resumed(set.get(), options, 4);
    RestoreLoaders(StatesOf(LoadersOf(whole.loaders)), "state", LoadersOf(resumed.loaders));
    const std::vector<Sample> expected = whole.Step(), found = resumed.Step();
    ASSERT_EQ(RecordsOf(found), RecordsOf(expected)) << step;
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].ordinal(), expected[i].ordinal());
      ASSERT_EQ(found[i].companion() != nullptr, i % 2 == 0);
      if (i % 2 == 0) {
        ASSERT_EQ(DocumentOf(*found[i].companion()), DocumentOf(*expected[i].companion()));
      }
    }
  }
}

TEST(GritData, FewerSamplesThanAStepInAllSetsAreRefused) {
  const auto set = SetsOf({3, 2});
  EXPECT_THAT(test::MessageOf([&] { Opened(set.get(), Options(), 6); }),
              testing::HasSubstr("holds 5 records in all sets, and a step takes 6"));
  EXPECT_EQ(test::CodeOf([&] { Opened(set.get(), Options(), 6); }), ErrorCode::kBadInput);
}

/// How often each came.
template <typename Key>
std::map<uint32_t, int> CountsOf(std::vector<Sample> samples, const Key& key) {
  std::map<uint32_t, int> counts;
  for (const Sample& sample : samples) ++counts[key(sample)];
  return counts;
}

TEST(GritData, BothKindsMakeAnEpochAsLongAsTheLongerOne) {
  for (const auto& [records, documents] : std::vector<std::pair<uint32_t, uint32_t>>{{10, 30}, {30, 10}}) {
    const auto set = SetsOf({records}, documents);
    Opened opened(set.get(), Options(kBoth), 5);
    EXPECT_EQ(opened.main().CountEpoch().samples, 30u);
    std::vector<Sample> embedded, generated;
    for (int step = 0; step < 6; ++step) {
      for (const Sample& sample : opened.Step()) {
        ASSERT_NE(sample.companion(), nullptr);
        embedded.push_back(sample);
        generated.push_back(*sample.companion());
      }
    }
    // Each record and each document came, those of the longer side once.
    EXPECT_EQ(CountsOf(embedded, RecordOf).size(), records);
    EXPECT_EQ(CountsOf(generated, DocumentOf).size(), documents);
    EXPECT_EQ(opened.loaders.at(kMainLoader)->cursor().epoch, 1u);
    EXPECT_EQ(opened.loaders.at(kGenerativeLoader)->cursor().epoch, 1u);
  }
}

TEST(GritData, UniqueIndicesRepeatTheShorterSideEvenly) {
  const auto set = SetsOf({10}, 30);
  GritDataOptions options = Options(kBoth);
  options.extra = DrawRules::Extra::kUnique;
  Opened opened(set.get(), options, 5);
  std::vector<Sample> embedded;
  for (int step = 0; step < 6; ++step) {
    for (const Sample& sample : opened.Step()) embedded.push_back(sample);
  }
  for (const auto& [record, count] : CountsOf(embedded, RecordOf)) EXPECT_EQ(count, 3) << record;
}

TEST(GritData, ACapTakesAsManyRecordsOfASet) {
  const auto set = SetsOf({20, 4});
  GritDataOptions options = Options();
  options.max_records = 8;
  Opened opened(set.get(), options, 2);
  std::map<uint32_t, std::set<uint32_t>> seen;
  for (int step = 0; step < 12; ++step) {
    for (const Sample& sample : opened.Step()) seen[sample.set()].insert(RecordOf(sample));
  }
  EXPECT_EQ(seen[0].size(), 8u);
  EXPECT_EQ(seen[1].size(), 4u);
}

TEST(GritData, WeightsOfSetsThatAreCountedAreRefused) {
  std::vector<NamedShardSet> text;
  text.push_back({"a", std::make_unique<MemoryShardSet>(test::NumberedDocuments(8), 3)});
  text.push_back({"b", std::make_unique<MemoryShardSet>(test::NumberedDocuments(8, 50), 3)});
  const auto rows = JoinShardSets(std::move(text), UnlikeSets::kTaken);
  SampleStreamOptions options = {.sets = OrderedSetsOf(*rows)};
  options.sets[0].weight += 1;
  GritDataOptions capped = {.embeds = false, .generates = true, .max_records = 3};
  EXPECT_EQ(test::CodeOf([&] { GritData(capped).Open(rows.get(), options, {}); }), ErrorCode::kUsage);
  capped.max_records = 0;
  EXPECT_EQ(test::CodeOf([&] { GritData(capped).Open(rows.get(), options, {}); }), std::nullopt);
}

TEST(GritData, WeightsAreRefusedWhereEachSetHasALoaderOfItsOwn) {
  for (const bool generates : {false, true}) {
    const auto set = generates ? SetsOf({20}, 20) : SetsOf({20, 20});
    SampleStreamOptions options = {.sets = OrderedSetsOf(*set), .step_samples = 4};
    const auto open = [&] { GritData(Options(generates)).Open(set.get(), options, {}); };
    EXPECT_EQ(test::CodeOf(open), std::nullopt);
    options.sets[1].weight *= 3;
    EXPECT_EQ(test::CodeOf(open), ErrorCode::kUsage);
    EXPECT_THAT(test::MessageOf(open), testing::HasSubstr("--data-weights"));
  }
}

TEST(GritData, ASetOfNothingToLearnIsRefusedByItsName) {
  const auto set = SetsOf({20}, 20);
  const GritDataOptions options = {
      .embeds = false, .generates = true, .generative_tokens = 1, .max_records = 0};
  EXPECT_THAT(test::MessageOf([&] { GritData(options).Open(set.get(), {}, {}); }),
              testing::StartsWith("text: hold no document with a token to predict among its first 1"));
}

TEST(GritData, FewerRecordsThanAStepOfOneSetAreRefusedWithoutAWordOfDropLast) {
  const auto set = SetsOf({5});
  Opened opened(set.get(), Options(), 6);
  try {
    opened.Step();
    FAIL() << "a step of 6 was made of 5 records";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadInput);
    EXPECT_STREQ(error.what(), "--data: holds 5 records for an epoch, and a step takes 6");
    EXPECT_EQ(error.hint(), "lower --batch or --accum");
  }
}

/// Of all steps of the epoch that a run begins with, as they are packed.
uint64_t PackedTokensOf(Opened* opened, uint64_t steps) {
  uint64_t tokens = 0;
  for (uint64_t step = 0; step < steps; ++step) {
    tokens += static_cast<uint64_t>(opened->data.Pack(opened->Step()).num_tokens());
  }
  return tokens;
}

TEST(GritData, AnEpochHasTheTokensThatItsStepsTake) {
  const auto one = SetsOf({16}), several = SetsOf({9, 8}), both = SetsOf({16}, 8), all = SetsOf({9, 8}, 40);
  GritDataOptions unified = Options(kBoth);
  unified.companion_every = 2;
  for (const auto& [set, options] : std::vector<std::pair<const ShardSet*, GritDataOptions>>{
           {one.get(), Options()}, {several.get(), Options()}, {both.get(), unified}, {all.get(), unified}}) {
    Opened opened(set, options, 4);
    // All texts are of one token, all rows of two.
    EXPECT_EQ(opened.main().CountEpoch().samples / 4, 4u);
    EXPECT_EQ(opened.main().CountEpoch().tokens, PackedTokensOf(&opened, 4));
  }
}

TEST(GritData, ARunOfSeveralSetsIsAsFarAsItsSteps) {
  const auto set = SetsOf({11, 6, 9}, 10);
  Opened opened(set.get(), Options(kBoth), 4);
  for (int step = 0; step <= 13; ++step) {
    EXPECT_DOUBLE_EQ(EpochsOf(LoadersOf(opened.loaders)), step / 6.0);
    opened.Step();
  }
}

TEST(GritData, SamplesThatAreMeasuredAloneHaveTheirCompanions) {
  const auto set = SetsOf({6}, 4);
  GritDataOptions options = Options(kBoth);
  options.companion_every = 2;
  Opened opened(set.get(), options, 2);
  std::vector<Sample> samples;
  for (int i = 0; i < 2; ++i) samples.push_back(opened.loaders.at(kGenerativeLoader)->Next());
  for (int i = 0; i < 5; ++i) samples.push_back(opened.loaders.at(kMainLoader)->Next());
  const std::vector<Sample> joined = opened.data.Join(samples);
  ASSERT_EQ(joined.size(), 5u);
  for (size_t i = 0; i < joined.size(); ++i) {
    EXPECT_EQ(RecordOf(joined[i]), RecordOf(samples[2 + i]));
    ASSERT_EQ(joined[i].companion() != nullptr, i % 2 == 0) << i;
    if (i % 2 == 0) {
      EXPECT_EQ(DocumentOf(*joined[i].companion()), DocumentOf(samples[i / 2 % 2]));
    }
  }
}

TEST(GritData, PacksRecordsFirstAndThenRowsWithTheNumbersOfTheirSamples) {
  const auto set = SetsOf({20}, 20);
  GritDataOptions options = Options(kBoth);
  options.companion_every = 3;
  Opened opened(set.get(), options, 6);
  const std::vector<Sample> step = opened.Step();
  const PackedBatch batch = opened.data.Pack(step);
  std::vector<uint32_t> queries, rows, owners;
  for (size_t s = 0; s < batch.notes.size(); ++s) {
    const SpanNote& note = batch.notes[s];
    const auto token = static_cast<uint32_t>(batch.tokens[static_cast<size_t>(batch.span_starts[s])]);
    if (note.use == TextUse::kQuery) {
      EXPECT_EQ(note.record, queries.size());
      queries.push_back(token / test::QueryToken(1));
    }
    if (note.use == TextUse::kGenerative) {
      rows.push_back(token);
      owners.push_back(note.record);
    }
    if (note.use == TextUse::kPositive || note.use == TextUse::kNegative) {
      EXPECT_EQ(token / test::QueryToken(1), queries.back());
      EXPECT_TRUE(rows.empty());
    }
  }
  EXPECT_EQ(queries, RecordsOf(step));
  EXPECT_THAT(owners, testing::ElementsAre(0, 3));
  EXPECT_THAT(rows, testing::ElementsAre(DocumentOf(*step[0].companion()), DocumentOf(*step[3].companion())));
  EXPECT_EQ(batch.notes.size(), 6u * 3u + 2u);
  EXPECT_EQ(batch.num_labels, 6 + 2);  // of two tokens of a document one is predicted
}

TEST(GritData, AStepIsTheSameHoweverItIsDividedAmongRanks) {
  const auto set = SetsOf({20}, 20);
  Opened opened(set.get(), Options(kBoth), 8);
  const std::vector<Sample> step = opened.Step();
  std::map<int64_t, std::vector<int64_t>> tokens;  // by ranks, in the order of records
  for (const int64_t ranks : {1, 2, 4}) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      for (const Sample& sample : ShareOf(step, rank, ranks)) {
        const PackedBatch batch = opened.data.Pack(std::vector<Sample>{sample});
        tokens[ranks].insert(tokens[ranks].end(), batch.tokens.begin(), batch.tokens.end());
      }
    }
  }
  EXPECT_EQ(tokens[2], tokens[1]);
  EXPECT_EQ(tokens[4], tokens[1]);
}

}  // namespace
}  // namespace trainwright
