#include "lib/dist/shared_rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "tests/support/on_ranks.h"

namespace trainwright {
namespace {

constexpr int kMeetings = 3;

/// How the work of a rank ended.
struct End {
  std::optional<Error> error;
  bool out_of_memory = false;
  int meetings = 0;
};

/// Ranks that meet kMeetings times; before the second time, one of `failing` does that.
std::vector<End> RunRanks(int64_t ranks, const std::map<int64_t, std::function<void()>>& failing) {
  return test::OnRanks(ranks, [&](World* world) {
    End end;
    SharedRounds rounds(world, 1);
    try {
      rounds.Run([&] {
        for (int meeting = 0; meeting < kMeetings; ++meeting) {
          const auto failure = failing.find(world->rank());
          if (meeting == 1 && failure != failing.end()) failure->second();
          rounds.Meet({0});
          ++end.meetings;
        }
      });
    } catch (const Error& error) {
      end.error = error;
    } catch (const std::bad_alloc&) {
      end.out_of_memory = true;
    }
    return end;
  });
}

void ThrowBadInput() {
  throw Error(ErrorCode::kBadInput, "shard-7.tws", "a frame is corrupt", "byte 99");
}
void ThrowNonFinite() {
  throw Error(ErrorCode::kNonFinite, "loss", "is not finite");
}

TEST(SharedRoundsTest, RanksToldEachOtherAtEveryMeeting) {
  const auto results = test::OnRanks(3, [](World* world) {
    SharedRounds rounds(world, 2);
    std::vector<std::vector<int64_t>> told;
    rounds.Run([&] {
      rounds.Meet({0, 0});
      told = rounds.Meet({world->rank(), -10 * world->rank()});
    });
    return told;
  });
  for (const auto& told : results)
    EXPECT_EQ(told, (std::vector<std::vector<int64_t>>{{0, 0}, {1, -10}, {2, -20}}));
}

TEST(SharedRoundsTest, WithoutAFailureAllMeetToTheEnd) {
  for (const End& end : RunRanks(3, {})) {
    EXPECT_FALSE(end.error);
    EXPECT_EQ(end.meetings, kMeetings);
  }
}

TEST(SharedRoundsTest, AFailureOfOneEndsTheOthersAtTheirNextMeetingWithItsCause) {
  const std::vector<End> ends = RunRanks(3, {{1, ThrowBadInput}});
  for (const End& end : ends) {
    ASSERT_TRUE(end.error);
    EXPECT_EQ(end.meetings, 1);
  }
  EXPECT_EQ(ends[1].error->code(), ErrorCode::kBadInput);
  for (const size_t other : {0, 2}) {
    EXPECT_EQ(ends[other].error->code(), ErrorCode::kIo);
    EXPECT_EQ(ends[other].error->object(), "rank 1");
    EXPECT_EQ(ends[other].error->problem(), "failed: shard-7.tws: a frame is corrupt (byte 99)");
  }
}

TEST(SharedRoundsTest, OfSeveralFailuresTheWorstCountsForThoseThatHadNone) {
  const std::vector<End> ends = RunRanks(4, {{0, ThrowNonFinite}, {2, ThrowBadInput}, {3, ThrowBadInput}});
  EXPECT_EQ(ends[1].error->object(), "rank 2");
  EXPECT_EQ(ends[0].error->object(), "rank 2") << "a number that is not finite may come of the other failure";
  EXPECT_EQ(ends[2].error->code(), ErrorCode::kBadInput);
  EXPECT_EQ(ends[3].error->code(), ErrorCode::kBadInput);
}

TEST(SharedRoundsTest, ANumberThatIsNotFiniteHasItsStatusOnAllRanks) {
  for (const End& end : RunRanks(2, {{1, ThrowNonFinite}}))
    EXPECT_EQ(end.error->code(), ErrorCode::kNonFinite);
}

TEST(SharedRoundsTest, MemoryThatRanOutOnOneRanOutOnAll) {
  for (const End& end : RunRanks(2, {{0, [] { throw std::bad_alloc(); }}})) EXPECT_TRUE(end.out_of_memory);
}

TEST(SharedRoundsTest, OneRankAloneThrowsWhatItsWorkThrows) {
  SharedRounds rounds(Solo(), 0);
  EXPECT_THROW(rounds.Run([] { throw std::out_of_range("own"); }), std::out_of_range);
}

}  // namespace
}  // namespace trainwright
