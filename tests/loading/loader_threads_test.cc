// The threads that decode live as long as the loader: no epoch starts new ones.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "lib/loading/sample_stream.h"
#include "tests/support/faulty_shard_set.h"

namespace trainwright {
namespace {

/// Tells which threads read it, each by a number that no later thread gets again.
class ThreadNotingSet final : public test::FaultyShardSet {
 public:
  using FaultyShardSet::FaultyShardSet;
  std::vector<Chunk> ReadFrameOf(uint64_t chunk, uint64_t* first_chunk) const override {
    static std::atomic<int> threads = 0;
    thread_local const int number = threads++;
    {
      const std::lock_guard lock(mutex_);
      readers_.insert(number);
    }
    return FaultyShardSet::ReadFrameOf(chunk, first_chunk);
  }
  std::set<int> readers() const {
    const std::lock_guard lock(mutex_);
    return readers_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::set<int> readers_;
};

std::vector<Chunk> OneDocumentEach(uint32_t count) {
  std::vector<Chunk> chunks;
  for (uint32_t i = 0; i < count; ++i) chunks.push_back({.segments = {{.tokens = 2}}, .tokens = {i, i}});
  return chunks;
}

TEST(LoaderThreads, AreTheSameInEveryEpoch) {
  constexpr int kWorkers = 2;
  const ThreadNotingSet set(OneDocumentEach(40), 4);
  SampleStream stream(&set, {.sequence_tokens = 2, .window_chunks = 4}, {.workers = kWorkers, .prefetch = 2});
  while (stream.cursor().epoch < 8) stream.Next();
  EXPECT_GE(set.readers().size(), 1u);
  EXPECT_LE(set.readers().size(), static_cast<size_t>(kWorkers)) << "no thread was started anew";
}

TEST(LoaderThreads, WithoutWorkersTheTrainersThreadReadsAlone) {
  const ThreadNotingSet set(OneDocumentEach(8), 4);
  SampleStream stream(&set, {.sequence_tokens = 2, .window_chunks = 4}, {.workers = 0});
  while (stream.cursor().epoch < 3) stream.Next();
  EXPECT_EQ(set.readers().size(), 1u);
}

}  // namespace
}  // namespace trainwright
