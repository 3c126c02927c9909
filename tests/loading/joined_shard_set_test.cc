// Sets of unlike records as one.
#include "lib/loading/joined_shard_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "tests/loading/text_chunks.h"
#include "tests/support/faulty_shard_set.h"
#include "tests/support/memory_shard_set.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::MemoryShardSet;

/// Six documents and four records.
std::vector<NamedShardSet> TextAndRecords() {
  std::vector<NamedShardSet> sets;
  sets.push_back({"text", std::make_unique<MemoryShardSet>(test::NumberedDocuments(6), 2)});
  sets.push_back({"records", std::make_unique<MemoryShardSet>(test::ChunksOf(test::NumberedRecords(4, 100)),
                                                              2, 1u << 30, RecordKind::kContrastive)});
  return sets;
}

TEST(JoinUnlikeSets, AreRefusedInTheWordsOfTheSets) {
  const std::string expected =
      "records: holds contrastive records, text lm | mix sets of one kind of records";
  EXPECT_EQ(test::MessageOf([] { JoinShardSets(TextAndRecords()); }), expected);
  const auto joined = JoinShardSets(TextAndRecords(), UnlikeSets::kTaken);
  EXPECT_EQ(test::MessageOf([&] { RequireAlikeParts(*joined); }), expected);
}

TEST(JoinUnlikeSets, OtherTokenizersAreRefusedAllTheSame) {
  std::vector<NamedShardSet> sets = TextAndRecords();
  auto other = std::make_unique<MemoryShardSet>(test::NumberedDocuments(2), 1);
  other->set_tokenizer_sha256({1});
  sets.push_back({"other", std::move(other)});
  EXPECT_THAT(test::MessageOf([&] { JoinShardSets(std::move(sets), UnlikeSets::kTaken); }),
              testing::HasSubstr("other: was made with another tokenizer than text"));
}

TEST(JoinUnlikeSets, TellTheirParts) {
  const auto joined = JoinShardSets(TextAndRecords(), UnlikeSets::kTaken);
  const std::vector<ShardSetPart> parts = joined->parts();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].name, "text");
  EXPECT_EQ(parts[0].records, RecordKind::kLm);
  EXPECT_EQ(parts[0].first_chunk, 0u);
  EXPECT_EQ(parts[0].documents, 6u);
  EXPECT_EQ(parts[1].name, "records");
  EXPECT_EQ(parts[1].records, RecordKind::kContrastive);
  EXPECT_EQ(parts[1].first_chunk, parts[0].chunks);
  EXPECT_EQ(parts[1].documents, 4u);
  EXPECT_EQ(parts[0].chunks + parts[1].chunks, joined->chunks());
}

TEST(JoinUnlikeSets, AreOneOrderedSetEach) {
  const auto joined = JoinShardSets(TextAndRecords(), UnlikeSets::kTaken);
  const std::vector<ShardSetPart> parts = joined->parts();
  const std::vector<OrderedSet> expected = {{.first_chunk = 0,
                                             .chunks = parts[0].chunks,
                                             .weight = parts[0].chunks,
                                             .number = 0,
                                             .records = RecordKind::kLm,
                                             .documents = 6},
                                            {.first_chunk = parts[0].chunks,
                                             .chunks = parts[1].chunks,
                                             .weight = parts[1].chunks,
                                             .number = 1,
                                             .records = RecordKind::kContrastive,
                                             .documents = 4}};
  EXPECT_EQ(OrderedSetsOf(*joined), expected);
}

TEST(JoinUnlikeSets, ASetByItselfIsOnePart) {
  const MemoryShardSet set(test::NumberedDocuments(6), 2);
  const std::vector<ShardSetPart> parts = set.parts();
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].chunks, set.chunks());
  EXPECT_EQ(parts[0].documents, 6u);
}

TEST(JoinShardSets, ASetByItselfHasTheNameThatItWasGiven) {
  std::vector<NamedShardSet> sets;
  sets.push_back({"nfs/nli/", std::make_unique<MemoryShardSet>(test::NumberedDocuments(6), 2)});
  const ShardSet* given = sets[0].set.get();
  const auto joined = JoinShardSets(std::move(sets));
  const std::vector<ShardSetPart> parts = joined->parts();
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].name, "nfs/nli");
  EXPECT_EQ(parts[0].documents, 6u);
  EXPECT_EQ(joined->content_sha256(), given->content_sha256());
  EXPECT_EQ(joined->header().provenance_json, given->header().provenance_json);
}

/// A set to which shards were appended.
class AppendedShardSet final : public test::FaultyShardSet {
 public:
  AppendedShardSet() : FaultyShardSet(test::NumberedDocuments(6), 2) {}
  std::string provenance_json() const override { return R"([{},{"tool":"other"}])"; }
};

TEST(JoinShardSets, SayHowAppendedShardsWereMade) {
  std::vector<NamedShardSet> one, two;
  one.push_back({"a", std::make_unique<AppendedShardSet>()});
  EXPECT_EQ(JoinShardSets(std::move(one))->provenance_json(), AppendedShardSet().provenance_json());
  two.push_back({"a", std::make_unique<AppendedShardSet>()});
  two.push_back({"b", std::make_unique<MemoryShardSet>(test::NumberedDocuments(6), 2)});
  EXPECT_EQ(JoinShardSets(std::move(two))->provenance_json(), R"([[{},{"tool":"other"}],{}])");
}

}  // namespace
}  // namespace trainwright
