/// Lends what one thread works with, a memo and buffers, to calls that may come from any number of threads.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace trainwright {

/// Makes as many workers as were ever borrowed at a time, and keeps them. Thread-safe.
template <typename Worker>
class WorkerPool {
 public:
  /// A worker for the length of one call; the pool outlives it.
  class Loan {
   public:
    explicit Loan(WorkerPool* pool) : pool_(*pool) {
      {
        const std::lock_guard lock(pool_.mutex_);
        if (!pool_.idle_.empty()) {
          worker_ = std::move(pool_.idle_.back());
          pool_.idle_.pop_back();
        }
      }
      if (worker_ == nullptr) worker_ = std::make_unique<Worker>();
    }
    ~Loan() {
      const std::lock_guard lock(pool_.mutex_);
      pool_.idle_.push_back(std::move(worker_));
    }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    Worker* get() const { return worker_.get(); }
    Worker* operator->() const { return worker_.get(); }

   private:
    WorkerPool& pool_;
    std::unique_ptr<Worker> worker_;
  };

  Loan Borrow() { return Loan(this); }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> idle_;
};

}  // namespace trainwright
