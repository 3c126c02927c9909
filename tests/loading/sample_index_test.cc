// The index of samples against a list of all of them.
#include "lib/loading/sample_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "lib/loading/lm_cutter.h"
#include "lib/loading/sample_indexes.h"
#include "tests/support/faulty_shard_set.h"
#include "tests/support/memory_shard_set.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

/// Chunks of `sizes` documents of two tokens; 0: padding alone. With sequences of two tokens each is a
/// sample.
std::vector<Chunk> ChunksOfSizes(const std::vector<uint32_t>& sizes) {
  std::vector<Chunk> chunks;
  for (const uint32_t size : sizes) {
    Chunk& chunk = chunks.emplace_back();
    chunk.segments.assign(size, {.tokens = 2});
    if (size == 0) chunk.segments.push_back({.tokens = 2, .flags = kSegmentPadding});
    chunk.tokens.assign(std::max<size_t>(1, size) * 2, 7);
  }
  return chunks;
}

LmCutter TwoTokens() {
  return {RecordKind::kLm, {.sequence_tokens = 2}};
}

class SampleIndexTest : public testing::Test {
 protected:
  SampleIndexTest() : random_(test::TestSeed()) {
    for (int i = 0; i < 200; ++i) sizes_.push_back(static_cast<uint32_t>(random_() % 5));
    sizes_.back() = 2;
  }
  std::mt19937_64 random_;
  std::vector<uint32_t> sizes_;
  /// Two stretches of whole frames of three chunks, the second one first.
  const std::vector<OrderedSet> sets_ = {{.first_chunk = 129, .chunks = 71, .number = 4},
                                         {.first_chunk = 0, .chunks = 129, .number = 9}};
};

TEST_F(SampleIndexTest, FindsEverySampleWhereItIsStored) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const test::MemoryShardSet set(ChunksOfSizes(sizes_), 3);
  const auto index = SampleIndex::Count(set, TwoTokens(), sets_);
  uint64_t samples = 0;
  for (size_t s = 0; s < sets_.size(); ++s) {
    uint64_t number = 0;
    for (uint64_t chunk = sets_[s].first_chunk; chunk < sets_[s].first_chunk + sets_[s].chunks; ++chunk) {
      EXPECT_EQ(index->FirstOf(chunk), number);
      EXPECT_EQ(index->SetOf(chunk), s);
      for (uint32_t i = 0; i < sizes_[chunk]; ++i, ++number) {
        ASSERT_EQ(index->At(s, number), (SampleIndex::Place{.chunk = chunk, .number = i}));
      }
    }
    EXPECT_EQ(index->samples_of(s), number);
    EXPECT_EQ(index->tokens_of(s), 2 * number);
    EXPECT_EQ(index->labels_of(s), number);
    EXPECT_EQ(index->number_of(s), sets_[s].number);
    samples += number;
  }
  EXPECT_EQ(index->samples(), samples);
}

TEST_F(SampleIndexTest, CountsWhatCannotBeReadAsEmptyWhereItMayBeSkipped) {
  test::FaultyShardSet set(ChunksOfSizes(std::vector<uint32_t>(6, 3)), 2);
  set.corrupt = {2};
  const std::vector<OrderedSet> all = {{.chunks = 6}};
  EXPECT_EQ(SampleIndex::Count(set, TwoTokens(), all, /*skip_bad=*/true)->samples(), 12u);
  EXPECT_EQ(test::CodeOf([&] { SampleIndex::Count(set, TwoTokens(), all); }), ErrorCode::kBadInput);
}

TEST_F(SampleIndexTest, IsMadeOnceOfTheSameSamples) {
  const test::FaultyShardSet set(ChunksOfSizes(std::vector<uint32_t>(6, 3)), 2);
  const std::vector<OrderedSet> all = {{.chunks = 6}}, some = {{.chunks = 4}};
  SampleIndexes indexes;
  const auto get = [&](const std::vector<OrderedSet>& sets, const std::string& choice) {
    return indexes.Get(set, TwoTokens(), sets, /*skip_bad=*/false, choice);
  };
  const auto first = get(all, "");
  EXPECT_EQ(first->samples(), 18u);
  const int reads = set.reads;
  EXPECT_EQ(get(all, ""), first);
  EXPECT_EQ(set.reads.load(), reads) << "nothing is read again";
  EXPECT_EQ(get(some, "")->samples(), 12u);
  EXPECT_NE(get(all, "negatives 3"), first);
  const LmCutter longer(RecordKind::kLm, {.sequence_tokens = 3});
  EXPECT_NE(indexes.Get(set, longer, all, false, ""), first);
}

}  // namespace
}  // namespace trainwright
