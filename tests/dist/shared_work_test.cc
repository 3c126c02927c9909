#include "lib/dist/shared_work.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/device/memory_error.h"
#include "tests/support/on_ranks.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

/// What a rank throws, with its status: "own 3 x: is corrupt", "common ..." of a CommonError; "" of nothing.
std::string ThrownBy(const std::function<void()>& call) {
  const auto text = [](const std::string& kind, const Error& error) {
    return kind + " " + std::to_string(static_cast<int>(error.code())) + " " + error.what();
  };
  try {
    call();
  } catch (const CommonError& error) {
    return text("common", error);
  } catch (const Error& error) {
    return text("own", error);
  } catch (const std::bad_alloc&) {
    return "memory";
  }
  return "";
}

void ThrowCorrupt(const std::string& object) {
  throw Error(ErrorCode::kBadInput, object, "is corrupt");
}

std::exception_ptr FailureOf(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

using Texts = std::vector<std::string>;

TEST(DoAlikeTest, WorkThatIsDoneOnAllRanksThrowsNothing) {
  const auto thrown = test::OnRanks(3, [](World* world) { return ThrownBy([&] { DoAlike(world, [] {}); }); });
  EXPECT_EQ(thrown, (Texts{"", "", ""}));
}

TEST(DoAlikeTest, WhatFailsOnAllRanksAlikeIsForTheFirstToTell) {
  const auto thrown = test::OnRanks(
      3, [](World* world) { return ThrownBy([&] { DoAlike(world, [] { ThrowCorrupt("shards"); }); }); });
  EXPECT_EQ(thrown, (Texts{"own 3 shards: is corrupt", "common 3 shards: is corrupt",
                           "common 3 shards: is corrupt"}));
}

TEST(DoAlikeTest, WhatFailsOnOneRankAloneIsItsOwnToTellAndNamedByTheOthers) {
  const auto thrown = test::OnRanks(3, [](World* world) {
    return ThrownBy([&] {
      DoAlike(world, [&] {
        if (world->rank() == 1) ThrowCorrupt("shards");
      });
    });
  });
  const std::string named = "own 4 rank 1: failed: shards: is corrupt";
  EXPECT_EQ(thrown, (Texts{named, "own 3 shards: is corrupt", named}));
}

TEST(DoAlikeTest, WhatFailsOtherwiseOnEachRankIsToldByEach) {
  const auto thrown = test::OnRanks(2, [](World* world) {
    return ThrownBy(
        [&] { DoAlike(world, [&] { ThrowCorrupt("shards-" + std::to_string(world->rank())); }); });
  });
  EXPECT_EQ(thrown, (Texts{"own 3 shards-0: is corrupt", "own 3 shards-1: is corrupt"}));
}

TEST(DoAlikeTest, OneRankAloneThrowsWhatItsWorkThrows) {
  EXPECT_EQ(ThrownBy([] { DoAlike(Solo(), [] { ThrowCorrupt("shards"); }); }), "own 3 shards: is corrupt");
}

TEST(ShareEndTest, AFailureOfOneRankIsNamedWithItsCauseByTheOthers) {
  const auto thrown = test::OnRanks(3, [](World* world) {
    const std::exception_ptr failure =
        world->rank() == 2 ? FailureOf([] { ThrowCorrupt("shards"); }) : nullptr;
    return ThrownBy([&] { ShareEnd(world, failure); });
  });
  const std::string named = "own 4 rank 2: failed: shards: is corrupt";
  EXPECT_EQ(thrown, (Texts{named, named, "own 3 shards: is corrupt"}));
}

TEST(ShareEndTest, EachRankNamesTheOneThatFailedAlsoWhereItKnewBefore) {
  const auto thrown = test::OnRanks(3, [](World* world) {
    const std::exception_ptr failure = FailureOf([&] {
      if (world->rank() == 1) ThrowCorrupt("shards");
      ThrowForAnother(WorkEnd::kFailed, "rank 1", "shards: is corrupt");
    });
    return ThrownBy([&] { ShareEnd(world, failure); });
  });
  const std::string named = "own 4 rank 1: failed: shards: is corrupt";
  EXPECT_EQ(thrown, (Texts{named, "own 3 shards: is corrupt", named}));
}

TEST(ShareEndTest, MemoryThatRanOutOnOneRankRanOutOnAll) {
  const auto thrown = test::OnRanks(2, [](World* world) {
    const std::exception_ptr failure =
        world->rank() == 1 ? FailureOf([] { throw std::bad_alloc(); }) : nullptr;
    return ThrownBy([&] { ShareEnd(world, failure); });
  });
  EXPECT_EQ(thrown, (Texts{"memory", "memory"}));
}

TEST(ShareEndTest, TheRankWhoseMemoryRanOutIsNamedByTheOthersWhateverTheirOwnCap) {
  const auto told = test::OnRanks(3, [](World* world) {
    const std::exception_ptr failure =
        world->rank() == 1 ? FailureOf([] { throw std::bad_alloc(); }) : nullptr;
    try {
      ShareEnd(world, failure);
    } catch (const std::exception& exception) {
      const Error error = *AsMemoryError(exception, {.cap = "--mem-fraction 0.5"});
      return std::to_string(static_cast<int>(error.code())) + " " + error.what();
    }
    return std::string("nothing");
  });
  EXPECT_EQ(told[0], "4 rank 1: ran out of memory");
  EXPECT_EQ(told[2], told[0]);
  EXPECT_EQ(told[1].find("5 memory: "), 0u) << told[1];
}

TEST(ShareEndTest, AllRanksHaveTheStatusOfTheSignalThatOneGot) {
  for (const ErrorCode code : {ErrorCode::kInterrupted, ErrorCode::kReaderLeft, ErrorCode::kTerminated}) {
    SCOPED_TRACE(static_cast<int>(code));
    const auto codes = test::OnRanks(3, [code](World* world) {
      const std::exception_ptr failure =
          world->rank() == 1 ? FailureOf([code] { throw Error(code, "", "stopped"); }) : nullptr;
      const auto fail = [&failure] {
        if (failure) std::rethrow_exception(failure);
      };
      const auto shared = test::CodeOf([&] { ShareEnd(world, failure); });
      return std::pair(shared, test::CodeOf([&] { DoAlike(world, fail); }));
    });
    for (const auto& [shared, alike] : codes) {
      EXPECT_EQ(shared, code);
      EXPECT_EQ(alike, code);
    }
  }
}

TEST(ShareEndTest, WorkThatIsDoneReturnsWhatWasAgreedOn) {
  const auto agreed = test::OnRanks(3, [](World* world) {
    return ShareEnd(world, nullptr, {world->rank(), -world->rank()});
  });
  for (const auto& answers : agreed) EXPECT_EQ(answers, (std::vector<int64_t>{2, 0}));
}

}  // namespace
}  // namespace trainwright
