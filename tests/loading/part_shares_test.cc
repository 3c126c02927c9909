#include "lib/loading/part_shares.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/loading/joined_shard_set.h"
#include "tests/support/memory_shard_set.h"

namespace trainwright {
namespace {

/// As many chunks of one document of ten tokens each.
NamedShardSet EqualChunks(const std::string& name, uint64_t chunks) {
  const Chunk chunk = {.segments = {{.tokens = 10}}, .tokens = std::vector<uint32_t>(10, 7)};
  return {name, std::make_unique<test::MemoryShardSet>(std::vector<Chunk>(chunks, chunk), 4)};
}

std::unique_ptr<ShardSet> JoinedChunks(uint64_t first_chunks, uint64_t second_chunks) {
  std::vector<NamedShardSet> sets;
  sets.push_back(EqualChunks("first", first_chunks));
  sets.push_back(EqualChunks("second", second_chunks));
  return JoinShardSets(std::move(sets));
}

/// How many tokens of each part a pass uses.
std::map<std::string, uint64_t> TokensUsed(const ShardSet& set, uint64_t max_tokens) {
  std::map<std::string, uint64_t> used;
  uint64_t tokens = 0;
  VisitShares(
      set, {.parts = set.parts(), .max_tokens = max_tokens}, [&] { return tokens; },
      [&](const ShardSetPart& part, const Chunk& chunk) {
        used[part.name] += chunk.tokens.size();
        tokens += chunk.tokens.size();
      });
  return used;
}

using PartTokens = std::map<std::string, uint64_t>;

TEST(PartShares, EachPartGivesWhatIsItsShareOfTheTokens) {
  EXPECT_EQ(TokensUsed(*JoinedChunks(30, 90), 400), (PartTokens{{"first", 100}, {"second", 300}}));
  EXPECT_EQ(TokensUsed(*JoinedChunks(90, 30), 400), (PartTokens{{"first", 300}, {"second", 100}}));
  EXPECT_EQ(TokensUsed(*JoinedChunks(30, 90), 0), (PartTokens{{"first", 300}, {"second", 900}}));
  EXPECT_EQ(TokensUsed(*JoinedChunks(30, 90), 5000), (PartTokens{{"first", 300}, {"second", 900}}));
}

TEST(PartShares, NoPartIsLeftOut) {
  EXPECT_EQ(TokensUsed(*JoinedChunks(99, 1), 15), (PartTokens{{"first", 20}, {"second", 10}}));
  EXPECT_EQ(TokensUsed(*JoinedChunks(1, 99), 1), (PartTokens{{"first", 10}, {"second", 10}}));
}

TEST(PartShares, ASinglePartGivesItsBeginning) {
  std::vector<NamedShardSet> sets;
  sets.push_back(EqualChunks("only", 50));
  const std::unique_ptr<ShardSet> set = JoinShardSets(std::move(sets));
  EXPECT_EQ(TokensUsed(*set, 15), (PartTokens{{"only", 20}}));
  EXPECT_EQ(TokensUsed(*set, 0), (PartTokens{{"only", 500}}));
}

TEST(PartShares, APartTakesWhatThoseBeforeItHaveLeft) {
  const std::unique_ptr<ShardSet> set = JoinedChunks(50, 50);
  uint64_t tokens = 0, second = 0;
  // Of the first part one chunk is held out, of the second all.
  VisitShares(
      *set, {.parts = set->parts(), .max_tokens = 200}, [&] { return tokens; },
      [&](const ShardSetPart& part, const Chunk& chunk) {
        if (part.name == "first" && tokens > 0) return;
        tokens += chunk.tokens.size();
        if (part.name == "second") second += chunk.tokens.size();
      });
  EXPECT_EQ(second, 190u);
}

}  // namespace
}  // namespace trainwright
