// Sets of unlike records, and what is told of them.
#include "lib/run/training_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/formats/shard.h"
#include "lib/loading/contrastive_cutter.h"
#include "lib/loading/document_split.h"
#include "lib/loading/sample_loader.h"
#include "tests/loading/text_chunks.h"
#include "tests/support/memory_shard_set.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

class UnlikeDataTest : public testing::Test {
 protected:
  static NamedShardSet Text(const std::string& name) {
    return {name, std::make_unique<test::MemoryShardSet>(test::NumberedDocuments(9), 2)};
  }
  static NamedShardSet Records(const std::string& name, uint32_t count) {
    return {name, std::make_unique<test::MemoryShardSet>(test::ChunksOf(test::NumberedRecords(count)), 2,
                                                         1u << 30, RecordKind::kContrastive)};
  }
  static TrainingData DataOf(NamedShardSet first, NamedShardSet second) {
    std::vector<NamedShardSet> sets;
    sets.push_back(std::move(first));
    sets.push_back(std::move(second));
    return TrainingData(std::move(sets));
  }
};

TEST_F(UnlikeDataTest, TellsItsKindsOfRecordsAndWhichSetHoldsThem) {
  const TrainingData data = DataOf(Text("text"), Records("records", 7));
  EXPECT_THAT(data.records(), testing::ElementsAre(RecordKind::kLm, RecordKind::kContrastive));
  ASSERT_EQ(data.sets().size(), 2u);
  EXPECT_EQ(data.sets()[0].records, RecordKind::kLm);
  EXPECT_EQ(data.sets()[0].documents, 9u);
  EXPECT_EQ(data.sets()[1].records, RecordKind::kContrastive);
  EXPECT_EQ(data.sets()[1].documents, 7u);
}

TEST_F(UnlikeDataTest, IsRefusedForAnObjectiveThatTakesNoMixture) {
  EXPECT_THAT(test::MessageOf([] { DataOf(Text("text"), Records("records", 7)).RequireAlike(); }),
              testing::StartsWith("records: holds contrastive records, text lm"));
  EXPECT_EQ(test::CodeOf([] { DataOf(Text("a"), Text("b")).RequireAlike(); }), std::nullopt);
}

TEST_F(UnlikeDataTest, ToEvaluateOnIsRefusedWithWhatToDo) {
  const auto message = [](NamedShardSet first, NamedShardSet second) {
    std::vector<NamedShardSet> data, evaluated;
    data.push_back(Text("text"));
    evaluated.push_back(std::move(first));
    evaluated.push_back(std::move(second));
    const TrainingData opened(std::move(data), JoinShardSets(std::move(evaluated), UnlikeSets::kTaken));
    return test::MessageOf([&] { opened.RequireAlike(); });
  };
  EXPECT_EQ(message(Text("a"), Records("b", 7)),
            "--eval-data: b holds contrastive records, a lm | give sets of one kind of records, and measure "
            "the others with evaluate");
  EXPECT_EQ(message(Text("a"), Text("b")), "");
}

/// What a run says that it takes of both sets, of the first one at most 3.
nlohmann::json SamplesUsedOf(const TrainingData& data) {
  std::map<std::string, std::unique_ptr<SampleLoader>> opened;
  for (const OrderedSet& set : data.sets()) {
    auto cutter = std::make_unique<ContrastiveCutter>(set.records, ContrastiveCutterOptions{});
    SampleOrderOptions order = {.sets = {set}};
    if (set.number == 0) {
      order.rules = {.index = SampleIndex::Count(data.set(), *cutter, order.sets), .most_samples = {3}};
    }
    opened[std::to_string(set.number)] =
        std::make_unique<SampleLoader>(&data.set(), std::move(cutter), order);
  }
  return nlohmann::json::parse(data.FormatSamplesUsed(LoadersOf(opened)));
}

TEST_F(UnlikeDataTest, SaysHowManySamplesAreTakenOfEachSet) {
  const nlohmann::json expected = {{"first.tws", 3}, {"second", 5}};
  EXPECT_EQ(SamplesUsedOf(DataOf(Records("there/first.tws", 8), Records("second/", 5))), expected);
}

TEST_F(UnlikeDataTest, SaysTheWholePathsOfSetsOfOneName) {
  const nlohmann::json expected = {{"here/nli", 3}, {"there/nli", 5}};
  EXPECT_EQ(SamplesUsedOf(DataOf(Records("here/nli", 8), Records("there/nli", 5))), expected);
}

class WeighedDataTest : public UnlikeDataTest {
 protected:
  /// Four chunks of so many tokens.
  static NamedShardSet Chunks(const std::string& name, uint32_t tokens, PackMode mode) {
    Chunk chunk;
    chunk.segments.push_back({.tokens = tokens});
    chunk.tokens.assign(tokens, 7);
    auto set = std::make_unique<test::MemoryShardSet>(std::vector<Chunk>(4, chunk), 2);
    set->set_packing(mode, OverflowPolicy::kSplit);
    return {name, std::move(set)};
  }
};

TEST_F(WeighedDataTest, SharesOfChunksThatAreNotFullAreRefused) {
  const TrainingData data =
      DataOf(Chunks("text", 64, PackMode::kBestFit), Chunks("chats", 10, PackMode::kNone));
  EXPECT_EQ(test::CodeOf([&] { data.RequireWeighable("0.5,0.5"); }), ErrorCode::kUsage);
  EXPECT_THAT(test::MessageOf([&] { data.RequireWeighable("0.5,0.5"); }),
              testing::StartsWith("--data-weights: gives shares of chunks, of which chats has 10.0 tokens in "
                                  "one, text 64.0: they would not be shares of tokens | pack "));
}

TEST_F(WeighedDataTest, SharesOfFullChunksAndOfNearlyAsManyTokensAreTaken) {
  const auto code = [](uint32_t tokens, PackMode mode, const std::string& weights) {
    const TrainingData data = DataOf(Chunks("text", 64, PackMode::kBestFit), Chunks("chats", tokens, mode));
    return test::CodeOf([&] { data.RequireWeighable(weights); });
  };
  EXPECT_EQ(code(10, PackMode::kBestFit, "0.5,0.5"), std::nullopt) << "padding";
  EXPECT_EQ(code(60, PackMode::kNone, "0.5,0.5"), std::nullopt);
  EXPECT_EQ(code(10, PackMode::kNone, ""), std::nullopt) << "each chunk once an epoch";
}

/// What is said of documents that were cut when some are held out.
std::string SaidOfCutDocuments(PackMode mode, OverflowPolicy overflow) {
  std::vector<Chunk> chunks = test::NumberedDocuments(9);
  for (Chunk& chunk : chunks) {
    chunk.segments.back().flags = kSegmentEndsMidDocument;
    chunk.segments.back().next_token = 1;
  }
  auto set = std::make_unique<test::MemoryShardSet>(std::move(chunks), 2);
  set->set_packing(mode, overflow);
  std::vector<NamedShardSet> sets;
  sets.push_back({"text", std::move(set)});
  const TrainingData data(std::move(sets));
  const DocumentSplit split = ParseDocumentSplit("3", 0, &data.set());
  testing::internal::CaptureStderr();
  data.CountHeldOut(split, /*masked=*/false, /*skip_bad_chunks=*/false);
  return testing::internal::GetCapturedStderr();
}

TEST(HeldOutDataTest, OnlyDocumentsOfSeveralPartsMayBeOnBothSides) {
  const auto warning = testing::HasSubstr("parts of one may be on both sides");
  EXPECT_THAT(SaidOfCutDocuments(PackMode::kBestFit, OverflowPolicy::kSplit), warning);
  EXPECT_THAT(SaidOfCutDocuments(PackMode::kConcat, OverflowPolicy::kTruncate), warning);
  EXPECT_THAT(SaidOfCutDocuments(PackMode::kBestFit, OverflowPolicy::kTruncate), testing::Not(warning));
}

TEST(HeldOutDataTest, WindowsThatOverlapAreToldByTheirSet) {
  const auto said = [](uint32_t stride) {
    std::vector<NamedShardSet> sets;
    for (const char* name : {"whole", "windows"}) {
      auto set = std::make_unique<test::MemoryShardSet>(test::NumberedDocuments(9), 2);
      set->set_windows(16, sets.empty() ? 16 : stride);
      sets.push_back({name, std::move(set)});
    }
    const TrainingData data(std::move(sets));
    testing::internal::CaptureStderr();
    data.CountHeldOut(ParseDocumentSplit("3", 0, &data.set()), /*masked=*/false, /*skip_bad_chunks=*/false);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said(8), testing::HasSubstr("windows of a document overlap in windows (pack --stride)"));
  EXPECT_THAT(said(16), testing::Not(testing::HasSubstr("--stride")));
}

}  // namespace
}  // namespace trainwright
