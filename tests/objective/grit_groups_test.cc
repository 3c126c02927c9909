// What ranks tell each other of their texts, against what one rank knows of them all.
#include "lib/objective/grit_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "tests/objective/grit_texts.h"
#include "tests/support/on_ranks.h"

namespace trainwright {
namespace {

constexpr int64_t kQueries = 20;

/// Samples `begin` to `end` in micro-batches of three.
GritGroups GroupsOfSamples(World* world, int64_t begin, int64_t end, bool with_texts) {
  std::vector<PackedBatch> batches;
  std::vector<GritSpans> spans;
  for (; begin < end; begin += 3) {
    batches.push_back(test::GritBatchOf({.vocabulary = 50, .queries = kQueries, .every_row = 2}, begin,
                                        std::min<int64_t>(3, end - begin)));
    // A positive that is not drawn, of the second record.
    if (batches.back().notes.size() > 1 && end - begin > 1) {
      batches.back().undrawn_positives.push_back(
          {.record = 1, .text_hash = 7000 + static_cast<uint64_t>(begin)});
    }
    spans.emplace_back(batches.back());
  }
  return GroupsOf(world, batches, spans, with_texts, /*leaves=*/1, at::kCPU);
}

void ExpectSame(const ContrastiveGroups& found, const ContrastiveGroups& expected) {
  EXPECT_EQ(found.first_passage, expected.first_passage);
  EXPECT_EQ(found.positives, expected.positives);
  EXPECT_EQ(found.query_text, expected.query_text);
  EXPECT_EQ(found.passage_text, expected.passage_text);
  EXPECT_EQ(found.first_known, expected.first_known);
  EXPECT_EQ(found.known_text, expected.known_text);
}

TEST(GritGroups, AllRanksKnowWhatOneWouldKnow) {
  for (const bool with_texts : {false, true}) {
    const GritGroups alone = GroupsOfSamples(Solo(), 0, kQueries, with_texts);
    EXPECT_EQ(alone.groups.queries(), kQueries);
    EXPECT_EQ(alone.share.own_queries(), kQueries);
    EXPECT_EQ(alone.share.own_passages(), alone.groups.passages());
    const int64_t bounds[] = {0, 6, 6, kQueries};  // the second rank has none
    const std::vector<GritGroups> of_ranks = test::OnRanks(3, [&](World* world) {
      return GroupsOfSamples(world, bounds[world->rank()], bounds[world->rank() + 1], with_texts);
    });
    for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
      ExpectSame(of_ranks[rank].groups, alone.groups);
      EXPECT_EQ(of_ranks[rank].share.begin_query, bounds[rank]);
      EXPECT_EQ(of_ranks[rank].share.end_query, bounds[rank + 1]);
      EXPECT_EQ(of_ranks[rank].share.begin_passage,
                alone.groups.first_passage[static_cast<size_t>(bounds[rank])]);
      EXPECT_EQ(of_ranks[rank].queries_of_rank, (std::vector<int64_t>{6, 0, kQueries - 6}));
    }
  }
}

// Here for want of a device, as elsewhere for want of memory: no rank waits for one that fails.
TEST(GritGroups, FailOnAllRanksWhereTheyFailOnOne) {
  const std::vector<bool> failed = test::OnRanks(2, [](World* world) {
    const at::Device device = world->rank() == 1 ? at::kVulkan : at::kCPU;
    try {
      GroupsOf(world, {}, {}, /*with_texts=*/true, /*leaves=*/1, device);
    } catch (const std::exception&) {
      return true;
    }
    return false;
  });
  EXPECT_EQ(failed, (std::vector<bool>{true, true}));
}

TEST(GritGroups, KnowEveryPositiveOfARecordDrawnOrNot) {
  const ContrastiveGroups groups = GroupsOfSamples(Solo(), 0, 3, /*with_texts=*/true).groups;
  // Records 0 to 2 have one positive each; the second one has another.
  EXPECT_EQ(groups.first_known, (std::vector<int64_t>{0, 1, 3, 4}));
  EXPECT_EQ(groups.known_text[0], groups.passage_text[0]);
  EXPECT_EQ(groups.known_text[2], 7000u);
}

TEST(GritGroups, CountsPassagesThatComeAgain) {
  ContrastiveGroups groups;
  groups.passage_text = {5, 1, 5, 2, 5, 1};
  EXPECT_EQ(CountRepeatedPassages(groups), 3);
}

}  // namespace
}  // namespace trainwright
