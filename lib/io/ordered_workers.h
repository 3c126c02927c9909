/// A pool of threads that maps inputs to outputs and hands the outputs back in the order of the inputs.
///
/// The result is the same for any number of threads. At most `capacity` items are under way, which bounds
/// memory. One thread calls Push and Pop; an exception thrown by `function` comes out of the Pop of its item.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace trainwright {

template <typename Input, typename Output>
class OrderedWorkers {
 public:
  /// Called from the worker threads; the first argument is the worker's index in [0, threads).
  using Function = std::function<Output(int, Input)>;

  /// \param threads >= 1
  /// \param capacity items under way, >= 1
  OrderedWorkers(int threads, size_t capacity, Function function)
      : capacity_(capacity), function_(std::move(function)) {
    try {
      for (int worker = 0; worker < threads; ++worker)
        threads_.emplace_back([this, worker] { Work(worker); });
    } catch (...) {  // no thread available, or no memory for one
      Stop();
      throw;
    }
  }
  ~OrderedWorkers() { Stop(); }
  OrderedWorkers(const OrderedWorkers&) = delete;
  OrderedWorkers& operator=(const OrderedWorkers&) = delete;

  /// True when a Pop must come before the next Push.
  bool full() const { return slots_.size() >= capacity_; }
  bool empty() const { return slots_.empty(); }

  void Push(Input input) {
    auto slot = std::make_shared<Slot>();
    slot->input.emplace(std::move(input));
    slots_.push_back(slot);
    try {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(slot));
    } catch (...) {
      slots_.pop_back();
      throw;
    }
    work_ready_.notify_one();
  }

  /// Waits for the oldest item's output, for at most this long.
  /// \returns whether it is there
  bool WaitFor(std::chrono::duration<double> time) {
    std::unique_lock lock(mutex_);
    const std::shared_ptr<Slot>& slot = slots_.front();
    return done_.wait_for(lock, time, [&] { return slot->output.has_value() || slot->error; });
  }

  /// Waits for the oldest item's output.
  Output Pop() {
    const std::shared_ptr<Slot> slot = std::move(slots_.front());
    slots_.pop_front();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return slot->output.has_value() || slot->error; });
    if (slot->error) std::rethrow_exception(slot->error);
    return std::move(*slot->output);
  }

 private:
  struct Slot {
    std::optional<Input> input;
    std::optional<Output> output;
    std::exception_ptr error;
  };

  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    work_ready_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void Work(int worker) {
    while (true) {
      std::shared_ptr<Slot> slot;
      {
        std::unique_lock lock(mutex_);
        work_ready_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
        if (stopping_) return;
        slot = std::move(queue_.front());
        queue_.pop_front();
      }
      std::optional<Output> output;
      std::exception_ptr error;
      try {
        output.emplace(function_(worker, std::move(*slot->input)));
      } catch (...) {
        error = std::current_exception();
      }
      {
        const std::lock_guard lock(mutex_);
        slot->input.reset();
        slot->output = std::move(output);
        slot->error = std::move(error);
        // The caller's reference is the last one: what it was handed is freed by its own thread.
        slot.reset();
      }
      done_.notify_all();
    }
  }

  const size_t capacity_;
  Function function_;
  std::deque<std::shared_ptr<Slot>> slots_;  // in input order; touched by the calling thread only
  std::mutex mutex_;
  std::condition_variable work_ready_, done_;
  std::deque<std::shared_ptr<Slot>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace trainwright
