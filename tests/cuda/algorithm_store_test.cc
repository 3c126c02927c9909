#include "lib/nn/cuda/algorithm_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <set>
#include <thread>
#include <vector>

namespace trainwright::cuda {
namespace {

/// Of which all that a key can hold is set.
EpilogueProduct WholeProduct(char* memory) {
  return {.rows = 1,
          .columns = 2,
          .depth = 3,
          .a = {memory, 4, false},
          .b = {memory, 5, false},
          .out = memory,
          .out_stride = 6,
          .epilogue = Epilogue::kGelu,
          .bias = memory,
          .bias_gradient = nullptr,
          .pre_activation = memory};
}

TEST(AlgorithmStoreTest, WhateverAChoiceDependsOnMakesAnotherKey) {
  alignas(256) char memory[512];
  const EpilogueProduct product = WholeProduct(memory);
  std::vector<EpilogueProduct> others(22, product);
  size_t next = 0;
  others[next++].rows = 7;
  others[next++].columns = 7;
  others[next++].depth = 7;
  others[next++].operand_type = Storage::kBf16;
  others[next++].out_type = Storage::kFp16;
  others[next++].tf32 = true;
  others[next++].a.transposed = true;
  others[next++].a.stride = 7;
  others[next++].a.data = memory + 8;
  others[next++].b.transposed = true;
  others[next++].b.stride = 7;
  others[next++].b.data = memory + 16;
  others[next++].out_stride = 7;
  others[next++].out = memory + 2;
  others[next++].epilogue = Epilogue::kBias;
  others[next++].bias = nullptr;
  others[next++].bias = memory + 4;
  others[next++].pre_activation = memory + 32;
  others[next++].candidate = 1;
  others[next++].fp8 = Fp8Operands{};
  others[next++].fp8 = Fp8Operands{.a = Fp8Format::kE5m2};
  others[next++].fp8 = Fp8Operands{.b = Fp8Format::kE5m2};
  std::set<AlgorithmKey> keys = {AlgorithmKeyOf(product, 0), AlgorithmKeyOf(product, 1)};
  for (const EpilogueProduct& other : others) keys.insert(AlgorithmKeyOf(other, 0));
  EXPECT_EQ(keys.size(), others.size() + 2);
}

TEST(AlgorithmStoreTest, OfAddressesAKeyHoldsTheAlignmentAlone) {
  alignas(512) char memory[1024];
  const EpilogueProduct product = WholeProduct(memory), elsewhere = WholeProduct(memory + 512);
  EXPECT_EQ(AlgorithmKeyOf(product, 0), AlgorithmKeyOf(elsewhere, 0));
  EXPECT_EQ(AlignmentOf(memory + 24), 8u);
  EXPECT_EQ(AlignmentOf(memory + 512), 256u);
}

TEST(AlgorithmStoreTest, HoldsTheLastAnswersAndNoMore) {
  AlgorithmStore<int> store(/*most=*/3);
  int asked = 0;
  const auto answer = [&](int key) {
    return store.Of({key}, [&] { return std::optional(100 * ++asked + key); });
  };
  for (const int key : {1, 2, 3}) answer(key);
  EXPECT_EQ(answer(1), 101);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(answer(4), 404);  // in the place of the first
  EXPECT_EQ(answer(2), 202);
  EXPECT_EQ(answer(3), 303);
  EXPECT_EQ(answer(1), 501);
}

TEST(AlgorithmStoreTest, ManyThreadsAskOnceForEach) {
  AlgorithmStore<int64_t> store;
  std::atomic<int> asked = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int64_t key = 0; key < 200; ++key) {
        const auto ask = [&] {
          ++asked;
          return std::optional(7 * key);
        };
        EXPECT_EQ(store.Of({key}, ask), 7 * key);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(asked, 200);
}

}  // namespace
}  // namespace trainwright::cuda
