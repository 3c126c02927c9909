#include "lib/formats/chunk_range.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/faulty_shard_set.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

/// The one token of each chunk is its number.
std::vector<Chunk> NumberedChunks(uint32_t count) {
  std::vector<Chunk> chunks;
  for (uint32_t i = 0; i < count; ++i) chunks.push_back({.segments = {{.tokens = 1}}, .tokens = {i}});
  return chunks;
}

/// The numbers that are told of chunks of a range, which have to be the chunks' own.
std::vector<uint64_t> Visited(const ShardSet& set, const ChunkRange& range, bool skip_bad, uint64_t most,
                              uint64_t* frames_skipped) {
  std::vector<uint64_t> numbers;
  *frames_skipped = VisitChunks(set, range, skip_bad, [&](uint64_t number, const Chunk& chunk) {
    EXPECT_EQ(chunk.tokens, (std::vector<uint32_t>{static_cast<uint32_t>(number)}));
    numbers.push_back(number);
    return numbers.size() < most;
  });
  return numbers;
}

TEST(ChunkRangeTest, EachChunkOfARangeComesOnceAndEachFrameIsReadOnce) {
  const test::FaultyShardSet set(NumberedChunks(12), /*chunks_per_frame=*/4);
  uint64_t frames_skipped = 0;
  EXPECT_EQ(Visited(set, {.first_chunk = 4, .chunks = 8}, /*skip_bad=*/false, 100, &frames_skipped),
            (std::vector<uint64_t>{4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(set.reads, 2);
  EXPECT_EQ(frames_skipped, 0u);
}

TEST(ChunkRangeTest, AVisitorThatHasEnoughEndsThePass) {
  const test::FaultyShardSet set(NumberedChunks(12), /*chunks_per_frame=*/4);
  uint64_t frames_skipped = 0;
  EXPECT_EQ(Visited(set, {.chunks = 12}, /*skip_bad=*/false, 3, &frames_skipped),
            (std::vector<uint64_t>{0, 1, 2}));
  EXPECT_EQ(set.reads, 1);
}

TEST(ChunkRangeTest, AFrameThatCannotBeReadIsAnErrorOrLeftOutAndCounted) {
  test::FaultyShardSet set(NumberedChunks(12), /*chunks_per_frame=*/4);
  set.corrupt = {5};
  uint64_t frames_skipped = 0;
  EXPECT_EQ(test::CodeOf([&] { Visited(set, {.chunks = 12}, /*skip_bad=*/false, 100, &frames_skipped); }),
            ErrorCode::kBadInput);
  EXPECT_EQ(Visited(set, {.chunks = 12}, /*skip_bad=*/true, 100, &frames_skipped),
            (std::vector<uint64_t>{0, 1, 2, 3, 8, 9, 10, 11}));
  EXPECT_EQ(frames_skipped, 1u);
}

}  // namespace
}  // namespace trainwright
