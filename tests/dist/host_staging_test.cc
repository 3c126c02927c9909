// Copies on the way between a GPU and the host, with tensors of the host for both.
#include "lib/dist/host_staging.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/support/on_ranks.h"

namespace trainwright {
namespace {

constexpr int64_t kRanks = 3;
constexpr float kUntouched = -1;

/// What each of the ranks is left with, by its rank.
using Work = at::Tensor (*)(Collectives* collectives, int64_t rank);

/// With copies on the way and without: the collectives are those of threads, which look whether anybody
/// touches what is under way.
std::pair<std::vector<at::Tensor>, std::vector<at::Tensor>> StagedAndDirect(Work work) {
  const auto staged = test::OnRanks(kRanks, [&](World* world) {
    HostStaging staging(world->collectives());
    return work(&staging, world->rank());
  });
  const auto direct =
      test::OnRanks(kRanks, [&](World* world) { return work(world->collectives(), world->rank()); });
  return {staged, direct};
}

void ExpectSame(Work work) {
  const auto [staged, direct] = StagedAndDirect(work);
  for (size_t rank = 0; rank < staged.size(); ++rank) EXPECT_TRUE(staged[rank].equal(direct[rank])) << rank;
}

at::Tensor Given(int64_t rank, int64_t size, at::ScalarType type = at::kFloat) {
  return at::arange(rank, rank + size, at::kFloat).to(type);
}

TEST(HostStagingTest, SumsAreThoseOfTheHost) {
  ExpectSame([](Collectives* collectives, int64_t rank) {
    const at::Tensor values = Given(rank, 5, at::kDouble);
    collectives->BeginSum(values)->Wait();
    return values;
  });
}

TEST(HostStagingTest, PartsGoWhereTheHostsWouldGo) {
  ExpectSame([](Collectives* collectives, int64_t rank) {
    const at::Tensor received = at::full({3 * rank}, kUntouched, at::kFloat);
    collectives->BeginExchange(Given(rank, 3), received, {0, 1, 2}, std::vector<int64_t>(kRanks, rank))
        ->Wait();
    return received;
  });
}

TEST(HostStagingTest, GathersWhatTheHostsWouldGather) {
  ExpectSame([](Collectives* collectives, int64_t rank) {
    const at::Tensor all = at::full({2 * kRanks}, kUntouched, at::kBFloat16);
    collectives->BeginGather(Given(rank, 2, at::kBFloat16), all)->Wait();
    return all;
  });
}

TEST(HostStagingTest, WhatComesIsWrittenWhenItIsWaitedFor) {
  const auto before = test::OnRanks(kRanks, [](World* world) {
    HostStaging staging(world->collectives());
    const at::Tensor all = at::full({kRanks}, kUntouched, at::kFloat);
    const auto work = staging.BeginGather(Given(world->rank(), 1), all);
    const at::Tensor meanwhile = all.clone();
    work->Wait();
    return meanwhile;
  });
  for (const at::Tensor& meanwhile : before) {
    EXPECT_TRUE(meanwhile.equal(at::full({kRanks}, kUntouched, at::kFloat)));
  }
}

}  // namespace
}  // namespace trainwright
