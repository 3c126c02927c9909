// Who decides whether ranks exchange through NCCL: none connects where another would not.
#include "lib/dist/nccl_choice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/on_ranks.h"

namespace trainwright {
namespace {

/// What each of the ranks is told.
std::vector<std::string> Told(const std::vector<RankGpu>& gpus) {
  return test::OnRanks(static_cast<int64_t>(gpus.size()), [&](World* world) {
    return WhyNotNccl(world, gpus[static_cast<size_t>(world->rank())]);
  });
}

TEST(NcclChoiceTest, RanksWithAGpuEachExchangeThroughNccl) {
  EXPECT_EQ(Told({{true, "a"}, {true, "b"}, {true, "c"}}), std::vector<std::string>(3, ""));
}

TEST(NcclChoiceTest, OneRankWithoutNcclKeepsAllFromIt) {
  EXPECT_EQ(Told({{true, "a"}, {true, "b"}, {false, "c"}}),
            std::vector<std::string>(3, "the CUDA plugin of rank 2 was built without NCCL"));
}

TEST(NcclChoiceTest, RanksThatShareAGpuAreNamed) {
  EXPECT_EQ(Told({{true, "a"}, {true, "b"}, {true, "c"}, {true, "b"}}),
            std::vector<std::string>(4, "ranks 1 and 3 share a GPU"));
}

TEST(NcclChoiceTest, AGpuThatIsNotKnownMayBeAnothersToo) {
  EXPECT_EQ(Told({{true, "a"}, {true, ""}}),
            std::vector<std::string>(2, "rank 1 cannot tell its GPU from others"));
}

}  // namespace
}  // namespace trainwright
