#include "lib/dist/store_probe.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>

#include "lib/base/elapsed.h"
#include "tests/dist/rank_processes.h"

namespace trainwright {
namespace {

TEST(ListensAtTest, TellsAServerFromOneThatIsGoneWithoutWaiting) {
  const auto [fd, port] = test::ListenOnLoopback();
  EXPECT_TRUE(ListensAt("127.0.0.1", port, 30));
  EXPECT_TRUE(ListensAt("localhost", port, 30));
  close(fd);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(ListensAt("127.0.0.1", port, 30));
  EXPECT_LT(SecondsSince(start), 10);
}

TEST(ListensAtTest, NobodyListensAtAHostWithoutAddress) {
  EXPECT_FALSE(ListensAt("", 0, 1));
}

}  // namespace
}  // namespace trainwright
