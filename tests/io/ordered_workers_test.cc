#include "lib/io/ordered_workers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>

#include "lib/base/rng.h"

namespace trainwright {
namespace {

std::vector<int> MapInOrder(int threads, size_t capacity) {
  const Rng rng(3, "delays");
  OrderedWorkers<int, int> workers(threads, capacity, [&](int, int value) {
    std::this_thread::sleep_for(std::chrono::microseconds(rng.Bits(value) % 200));
    return value * value;
  });
  std::vector<int> results;
  for (int i = 0; i < 300; ++i) {
    if (workers.full()) results.push_back(workers.Pop());
    workers.Push(i);
  }
  while (!workers.empty()) results.push_back(workers.Pop());
  return results;
}

TEST(OrderedWorkersTest, ResultsComeInInputOrderForAnyThreadCount) {
  std::vector<int> expected;
  for (int i = 0; i < 300; ++i) expected.push_back(i * i);
  for (const int threads : {1, 2, 5}) {
    for (const size_t capacity : {size_t{1}, size_t{8}}) EXPECT_EQ(MapInOrder(threads, capacity), expected);
  }
}

TEST(OrderedWorkersTest, AnExceptionComesOutOfThePopOfItsItem) {
  OrderedWorkers<int, int> workers(2, 8, [](int, int value) {
    if (value == 1) throw std::runtime_error("one");
    return value;
  });
  for (int i = 0; i < 3; ++i) workers.Push(i);
  EXPECT_EQ(workers.Pop(), 0);
  EXPECT_THROW(workers.Pop(), std::runtime_error);
  EXPECT_EQ(workers.Pop(), 2);
}

TEST(OrderedWorkersTest, LeavingItemsUnpoppedEndsCleanly) {
  OrderedWorkers<int, int> workers(2, 8, [](int, int value) { return value; });
  for (int i = 0; i < 8; ++i) workers.Push(i);
  SUCCEED();
}

}  // namespace
}  // namespace trainwright
