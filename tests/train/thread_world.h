/// Ranks that are threads of one process.
///
/// What they exchange is copied when it is begun and written when it is waited for; between the two it is
/// filled with NaN (whole numbers with the least), and that nobody touched it is checked. Sums are added up
/// one rank after another, from a rank that changes from sum to sum: never as a tree of neighbours where
/// there are four or more. A rank that does not come within a minute, or begins something else than the
/// others, ends all.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/dist/collectives.h"
#include "lib/dist/world.h"

namespace trainwright::test {

class ThreadWorld {
 public:
  explicit ThreadWorld(int64_t size) {
    for (int64_t rank = 0; rank < size; ++rank) ranks_.push_back(std::make_unique<Rank>(this, rank));
  }
  /// For one thread; lives as long as this.
  World* rank(int64_t rank) { return ranks_[static_cast<size_t>(rank)].get(); }
  /// Does some work as each rank, in threads; waits for all and throws what the first that failed threw.
  /// \param work called with a rank's world
  /// \returns what it returned, by rank
  template <typename Work>
  auto Run(const Work& work) {
    std::vector<std::future<decltype(work(rank(0)))>> running;
    for (const auto& own : ranks_) {
      running.push_back(std::async(std::launch::async, [&work, world = own.get()] { return work(world); }));
    }
    std::vector<decltype(work(rank(0)))> results;
    for (auto& one : running) results.push_back(one.get());
    return results;
  }
  /// Called by a rank before it begins something; set before the ranks' threads are there.
  std::function<void(int64_t rank)> on_begin;
  /// What a rank has begun so far, by kind and number of elements: "sum 32". Not while its thread runs.
  const std::vector<std::string>& begun(int64_t rank) const {
    return ranks_[static_cast<size_t>(rank)]->begun;
  }

 private:
  using Counts = std::vector<int64_t>;
  using Tensors = std::vector<at::Tensor>;

  /// Something that all ranks do together: each gives something, and takes what all gave.
  template <typename Given>
  struct Meeting {
    std::vector<Given> given;
    std::vector<std::string> kinds;
    size_t arrived = 0, left = 0;
  };

  /// Meetings by their number, which each rank counts.
  template <typename Given>
  class Meetings {
   public:
    explicit Meetings(ThreadWorld* world) : world_(world) {}
    void Give(int64_t rank, size_t number, const std::string& kind, Given given) {
      const std::lock_guard lock(world_->mutex_);
      Meeting<Given>& meeting = Of(number);
      meeting.given[static_cast<size_t>(rank)] = std::move(given);
      meeting.kinds[static_cast<size_t>(rank)] = kind;
      ++meeting.arrived;
      world_->changed_.notify_all();
    }
    /// \throws Error{kIo} where not all come, or others do something else
    std::vector<Given> Take(size_t number) {
      std::unique_lock lock(world_->mutex_);
      Meeting<Given>& meeting = Of(number);
      const bool all_came = world_->changed_.wait_for(
          lock, std::chrono::minutes(1), [&] { return meeting.arrived == world_->ranks_.size(); });
      if (!all_came) throw Error(ErrorCode::kIo, "thread world", "a rank did not come");
      for (const std::string& kind : meeting.kinds) {
        if (kind == meeting.kinds[0]) continue;
        throw Error(ErrorCode::kIo, "thread world",
                    kind + " in one rank, " + meeting.kinds[0] + " in another");
      }
      std::vector<Given> given = meeting.given;
      if (++meeting.left == world_->ranks_.size()) meetings_.erase(number);
      return given;
    }

   private:
    Meeting<Given>& Of(size_t number) {
      Meeting<Given>& meeting = meetings_[number];
      meeting.given.resize(world_->ranks_.size());
      meeting.kinds.resize(world_->ranks_.size());
      return meeting;
    }

    ThreadWorld* world_;
    std::map<size_t, Meeting<Given>> meetings_;
  };

  /// Tensors that are not to be touched until Wait.
  class Pending final : public PendingWork {
   public:
    using Compute = std::function<at::Tensor(const std::vector<Tensors>& given)>;
    /// \param read, written the work's own; one that is both is in `written`
    Pending(ThreadWorld* world, size_t number, const at::Tensor& read, at::Tensor written, Compute compute)
        : world_(world),
          number_(number),
          read_(read),
          read_before_(read.defined() ? read.clone() : at::Tensor()),
          written_(std::move(written)),
          compute_(std::move(compute)) {
      if (written_.is_floating_point()) {
        written_.fill_(std::numeric_limits<double>::quiet_NaN());
      } else {
        written_.fill_(std::numeric_limits<int64_t>::min());
      }
    }
    void Wait() override {
      if (!Untouched().all().item<bool>() || (read_.defined() && !SameBits(read_, read_before_))) {
        throw Error(ErrorCode::kInternal, "thread world",
                    "what was begun was touched before it was waited for");
      }
      written_.copy_(compute_(world_->exchanges_.Take(number_)));
    }

   private:
    at::Tensor Untouched() const {
      return written_.is_floating_point() ? written_.isnan()
                                          : written_.eq(std::numeric_limits<int64_t>::min());
    }
    static bool SameBits(const at::Tensor& a, const at::Tensor& b) {
      return a.nan_to_num(12345).equal(b.nan_to_num(12345));
    }

    ThreadWorld* world_;
    size_t number_;
    at::Tensor read_, read_before_, written_;
    Compute compute_;
  };

  class Rank final : public World, public Collectives {
   public:
    Rank(ThreadWorld* world, int64_t rank) : world_(world), rank_(rank) {}
    int64_t rank() const override { return rank_; }
    int64_t size() const override { return static_cast<int64_t>(world_->ranks_.size()); }
    void Reduce(Counts* counts) override { *counts = Meet("reduce", *counts, std::plus<>()); }
    Counts Agree(const Counts& answers) override {
      return Meet("agree", answers, [](int64_t a, int64_t b) { return std::max(a, b); });
    }
    Collectives* collectives() override { return size() > 1 ? this : nullptr; }

    std::unique_ptr<PendingWork> BeginSum(at::Tensor values) override {
      const size_t number = Give("sum", values.numel(), {values.clone()});
      return std::make_unique<Pending>(world_, number, at::Tensor(), values,
                                       [number](const std::vector<Tensors>& given) {
                                         at::Tensor sum = given[number % given.size()][0].clone();
                                         for (size_t i = 1; i < given.size(); ++i) {
                                           sum.add_(given[(number + i) % given.size()][0]);
                                         }
                                         return sum;
                                       });
    }
    std::unique_ptr<PendingWork> BeginExchange(const at::Tensor& send, at::Tensor receive,
                                               const Counts& send_counts,
                                               const Counts& receive_counts) override {
      Tensors parts = send.clone().split_with_sizes(send_counts);
      const size_t number = Give("exchange", size(), std::move(parts));
      return std::make_unique<Pending>(world_, number, send, receive,
                                       [rank = rank_, receive_counts](const std::vector<Tensors>& given) {
                                         Tensors own;
                                         for (size_t from = 0; from < given.size(); ++from) {
                                           own.push_back(given[from][static_cast<size_t>(rank)]);
                                           TRAINWRIGHT_CHECK(own.back().numel() == receive_counts[from]);
                                         }
                                         return at::cat(own);
                                       });
    }
    std::unique_ptr<PendingWork> BeginGather(const at::Tensor& own, at::Tensor all) override {
      TRAINWRIGHT_CHECK(all.numel() == size() * own.numel());
      const size_t number = Give("gather", own.numel(), {own.clone()});
      return std::make_unique<Pending>(world_, number, own, all, [](const std::vector<Tensors>& given) {
        Tensors parts;
        for (const Tensors& part : given) parts.push_back(part[0]);
        return at::cat(parts);
      });
    }

    std::vector<std::string> begun;

   private:
    /// \returns the number of the exchange
    size_t Give(const std::string& kind, int64_t elements, Tensors given) {
      if (world_->on_begin) world_->on_begin(rank_);
      begun.push_back(kind + " " + std::to_string(elements));
      world_->exchanges_.Give(rank_, exchanges_, begun.back(), std::move(given));
      return exchanges_++;
    }
    template <typename Combine>
    Counts Meet(const std::string& kind, const Counts& own, const Combine& combine) {
      const size_t number = meetings_++;
      world_->talks_.Give(rank_, number, kind + " " + std::to_string(own.size()), own);
      const std::vector<Counts> given = world_->talks_.Take(number);
      Counts all = given[0];
      for (size_t other = 1; other < given.size(); ++other) {
        std::transform(all.begin(), all.end(), given[other].begin(), all.begin(), combine);
      }
      return all;
    }

    ThreadWorld* world_;
    int64_t rank_;
    size_t meetings_ = 0, exchanges_ = 0;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  Meetings<Counts> talks_{this};
  Meetings<Tensors> exchanges_{this};
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace trainwright::test
