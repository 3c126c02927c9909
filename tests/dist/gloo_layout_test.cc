// Whether this compiler lays out c10d's Gloo group as LibTorch's did, though it knows gloo by other headers.
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <vector>

namespace trainwright {
namespace {

using c10d::ProcessGroupGloo;

constexpr int kThreads = 3;  // not the default
constexpr int kSamples = 8;

/// Members that only a derived class may name. Never made: it would need functions of gloo.
struct Members : ProcessGroupGloo {
  static auto threads() { return &Members::threads_; }
  static auto contexts() { return &Members::contexts_; }
  static auto stop() { return &Members::stop_; }
  static auto collective_counter() { return &Members::collectiveCounter_; }
  static auto sequence() { return &Members::seq_; }
  static auto status() { return &Members::pgStatus_; }
};

c10::intrusive_ptr<ProcessGroupGloo::Options> LoopbackOptions() {
  auto options = ProcessGroupGloo::Options::create(std::chrono::seconds(5));
  options->devices.push_back(ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  options->threads = kThreads;
  return options;
}

/// What malloc gives for an object of a size. Often a little more lies about: the least of some.
size_t LeastBlockFor(size_t size_bytes) {
  std::vector<void*> blocks;
  size_t least = SIZE_MAX;
  for (int i = 0; i < kSamples; ++i) {
    blocks.push_back(::operator new(size_bytes));
    least = std::min(least, malloc_usable_size(blocks.back()));
  }
  for (void* block : blocks) ::operator delete(block);
  return least;
}

template <typename Object>
size_t BlockOf(const c10::intrusive_ptr<Object>& object) {
  return malloc_usable_size(const_cast<void*>(dynamic_cast<const void*>(object.get())));
}

TEST(GlooLayoutTest, AGroupThatLibTorchMakesIsAsLarge) {
  auto store = c10::make_intrusive<c10d::HashStore>();
  const auto group = c10::make_intrusive<ProcessGroupGloo>(
      c10::make_intrusive<c10d::PrefixStore>("own", store), 0, 1, LoopbackOptions());
  std::vector<c10::intrusive_ptr<c10d::Backend>> made;
  size_t least = SIZE_MAX;
  for (int i = 0; i < kSamples; ++i) {
    made.push_back(group->split(c10::make_intrusive<c10d::PrefixStore>(std::to_string(i), store), {0},
                                LoopbackOptions()));
    least = std::min(least, BlockOf(made.back()));
  }
  EXPECT_EQ(least, LeastBlockFor(sizeof(ProcessGroupGloo)));
  EXPECT_NE(least, LeastBlockFor(sizeof(ProcessGroupGloo) + 2 * sizeof(void*)));
  EXPECT_NE(least, LeastBlockFor(sizeof(ProcessGroupGloo) - 2 * sizeof(void*)));
}

TEST(GlooLayoutTest, OptionsThatLibTorchMakesAreAsLarge) {
  std::vector<c10::intrusive_ptr<ProcessGroupGloo::Options>> made;
  size_t least = SIZE_MAX;
  for (int i = 0; i < kSamples; ++i) {
    made.push_back(ProcessGroupGloo::Options::create_default(std::chrono::milliseconds(4321)));
    least = std::min(least, BlockOf(made.back()));
  }
  EXPECT_EQ(least, LeastBlockFor(sizeof(ProcessGroupGloo::Options)));
  EXPECT_EQ(made[0]->threads, 2);
  EXPECT_EQ(made[0]->devices.size(), 1U);
  EXPECT_EQ(made[0]->timeout, std::chrono::milliseconds(4321));
}

TEST(GlooLayoutTest, TheConstructorWritesAllOfTheObjectAndNothingBehindIt) {
  constexpr unsigned char kPattern = 0xA5;
  constexpr size_t kGuard = 4096;
  alignas(64) static unsigned char memory[sizeof(ProcessGroupGloo) + kGuard];
  std::memset(memory, kPattern, sizeof memory);
  auto* group =
      new (memory) ProcessGroupGloo(c10::make_intrusive<c10d::HashStore>(), 0, 1, LoopbackOptions());
  for (size_t i = sizeof(ProcessGroupGloo); i < sizeof memory; ++i) ASSERT_EQ(memory[i], kPattern) << i;
  // The last word is that of a shared pointer, which is never the pattern.
  unsigned char pattern[sizeof(void*)];
  std::memset(pattern, kPattern, sizeof pattern);
  EXPECT_NE(std::memcmp(memory + sizeof(ProcessGroupGloo) - sizeof pattern, pattern, sizeof pattern), 0);
  group->~ProcessGroupGloo();
}

TEST(GlooLayoutTest, MembersAreWhereLibTorchReadsAndWritesThem) {
  const auto group =
      c10::make_intrusive<ProcessGroupGloo>(c10::make_intrusive<c10d::HashStore>(), 0, 1, LoopbackOptions());
  EXPECT_EQ(group->getSize(), 1);
  EXPECT_EQ(group->getNumThreads(), kThreads);
  EXPECT_EQ(((*group).*Members::threads()).size(), static_cast<size_t>(kThreads));
  EXPECT_EQ(((*group).*Members::contexts()).size(), 1U);
  EXPECT_FALSE((*group).*Members::stop());
  EXPECT_EQ((*group).*Members::collective_counter(), 0U);
  for (int i = 0; i < 2; ++i) {
    std::vector<at::Tensor> ones{at::ones({4})};
    group->allreduce(ones)->wait();
    EXPECT_EQ(ones[0].sum().item<float>(), 4);
  }
  EXPECT_EQ((*group).*Members::collective_counter(), 2U);
  EXPECT_EQ(group->getSequenceNumberForGroup(), (*group).*Members::sequence());
  EXPECT_EQ(((*group).*Members::status())->lastEnqueuedSeq,
            static_cast<int64_t>((*group).*Members::sequence()));
}

}  // namespace
}  // namespace trainwright
