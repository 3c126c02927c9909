/// Ranks that are threads of one process.
#pragma once

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lib/dist/world.h"

namespace trainwright::test {

class ThreadWorld {
 public:
  explicit ThreadWorld(int64_t size) : given_(static_cast<size_t>(size)), meeting_(size) {
    for (int64_t rank = 0; rank < size; ++rank) ranks_.push_back(std::make_unique<Rank>(this, rank));
  }
  /// For one thread; lives as long as this.
  World* rank(int64_t rank) { return ranks_[static_cast<size_t>(rank)].get(); }

 private:
  using Counts = std::vector<int64_t>;

  class Rank final : public World {
   public:
    Rank(ThreadWorld* world, int64_t rank) : world_(world), rank_(rank) {}
    int64_t rank() const override { return rank_; }
    int64_t size() const override { return static_cast<int64_t>(world_->given_.size()); }
    void Reduce(Counts* counts) override { *counts = world_->Meet(rank_, *counts, std::plus<>()); }
    Counts Agree(const Counts& answers) override {
      return world_->Meet(rank_, answers, [](int64_t a, int64_t b) { return std::max(a, b); });
    }

   private:
    ThreadWorld* world_;
    int64_t rank_;
  };

  template <typename Combine>
  Counts Meet(int64_t rank, const Counts& own, const Combine& combine) {
    given_[static_cast<size_t>(rank)] = own;
    meeting_.arrive_and_wait();
    Counts all = given_[0];
    for (size_t other = 1; other < given_.size(); ++other) {
      std::transform(all.begin(), all.end(), given_[other].begin(), all.begin(), combine);
    }
    meeting_.arrive_and_wait();
    return all;
  }

  std::vector<Counts> given_;
  std::barrier<> meeting_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace trainwright::test
