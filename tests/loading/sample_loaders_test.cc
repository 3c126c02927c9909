// Several loaders of a run, together.
#include "lib/loading/sample_loaders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/loading/sample_stream.h"
#include "tests/support/memory_shard_set.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::vector<Chunk> kDocuments(9, Chunk{.segments = {{.tokens = 4}}, .tokens = {1, 2, 3, 4}});

/// Two loaders that read a set of nine samples in different orders.
struct Pair {
  explicit Pair(uint64_t second_seed = 2) : second(&set, Options(second_seed)) {}
  static SampleStreamOptions Options(uint64_t seed) {
    return {.sequence_tokens = 4, .seed = seed, .window_chunks = 2};
  }
  SampleLoaders loaders() { return {{kMainLoader, &main}, {"second", &second}}; }

  const test::MemoryShardSet set{kDocuments, 3};
  SampleStream main{&set, Options(1)};
  SampleStream second;
};

/// What a pair says to states of another.
std::string MessageTo(const LoaderStates& states) {
  Pair pair;
  return test::MessageOf([&] { RestoreLoaders(states, "state file", pair.loaders()); });
}

TEST(SampleLoadersTest, EachGoesOnWhereItStood) {
  Pair pair, resumed;
  pair.main.NextStep(3, false);
  pair.second.NextStep(10, false);
  RestoreLoaders(StatesOf(pair.loaders()), "state file", resumed.loaders());
  EXPECT_EQ(resumed.main.cursor(), (SampleCursor{.window = 1, .sample = 1}));
  EXPECT_EQ(resumed.second.cursor(), (SampleCursor{.epoch = 1, .sample = 1}));
}

TEST(SampleLoadersTest, AStateWithoutOneOfThemIsRefused) {
  Pair pair;
  EXPECT_THAT(MessageTo({{kMainLoader, pair.main.state()}}),
              StartsWith(R"(state file: states where the run's loaders "data" are, and this one has )"
                         R"("data", "second" | )"));
}

TEST(SampleLoadersTest, AStateWithAnotherIsRefused) {
  Pair pair;
  LoaderStates states = StatesOf(pair.loaders());
  states["third"] = pair.second.state();
  EXPECT_THAT(MessageTo(states), HasSubstr(R"("data", "second", "third" are, and this one has "data")"));
}

TEST(SampleLoadersTest, AStateInAnotherOrderIsRefusedByTheLoadersName) {
  Pair other(/*second_seed=*/3);
  EXPECT_THAT(MessageTo(StatesOf(other.loaders())), HasSubstr("the loader \"second\" is in other data"));
}

TEST(SampleLoadersTest, APlaceThatTheDataDoesNotHaveIsRefusedByTheLoadersName) {
  Pair pair;
  LoaderStates states = StatesOf(pair.loaders());
  states.at("second").cursor.window = 5;
  EXPECT_THAT(MessageTo(states), StartsWith("state file: loader \"second\": data position: window 5"));
}

TEST(SampleLoadersTest, HoldWhatAllHoldTogether) {
  Pair pair;
  pair.main.Next();
  const int64_t main_bytes = pair.main.loader_counts().most_held_bytes;
  pair.second.Next();
  EXPECT_EQ(MostHeldBytes(pair.loaders()), main_bytes + pair.second.loader_counts().most_held_bytes);
}

/// The steps, counted from 1, of `samples` each that end an epoch, of the first 12.
std::vector<int> StepsThatEndAnEpoch(int64_t samples, bool drop_last) {
  Pair pair;
  std::vector<int> ends;
  for (int step = 1; step <= 12; ++step) {
    const double before = EpochsOf(pair.loaders());
    pair.main.NextStep(samples, drop_last);
    if (EndedEpoch(pair.loaders(), before, samples, drop_last)) ends.push_back(step);
  }
  return ends;
}

TEST(SampleLoadersTest, AnEpochEndsWithTheStepThatTakesItsLastSample) {
  EXPECT_EQ(StepsThatEndAnEpoch(4, false), (std::vector<int>{3, 5, 7, 9, 12}));
}

TEST(SampleLoadersTest, AnEpochWhoseRestIsSkippedEndsWithItsLastWholeStep) {
  EXPECT_EQ(StepsThatEndAnEpoch(4, true), (std::vector<int>{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(StepsThatEndAnEpoch(5, true), (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
}

TEST(SampleLoadersTest, AnEpochOfWholeStepsEndsWithItsLastSampleEitherWay) {
  EXPECT_EQ(StepsThatEndAnEpoch(3, true), (std::vector<int>{3, 6, 9, 12}));
  EXPECT_EQ(StepsThatEndAnEpoch(3, false), (std::vector<int>{3, 6, 9, 12}));
}

TEST(SampleLoadersTest, EpochsCountAShortWindowByItsChunks) {
  Pair pair;  // windows of 2, 2, 2, 2 and 1 samples
  for (int sample = 1; sample <= 18; ++sample) {
    pair.main.Next();
    EXPECT_DOUBLE_EQ(EpochsOf(pair.loaders()), sample / 9.0);
  }
}

}  // namespace
}  // namespace trainwright
