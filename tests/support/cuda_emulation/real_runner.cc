#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/support/cuda_emulation/thread_runner.h"

namespace trainwright::cuda_emulation {
namespace {

/// Counts up and waits to count down: std::binary_semaphore of one waiting thread.
class Signal {
 public:
  void Give() {
    const std::lock_guard lock(mutex_);
    ++count_;
    condition_.notify_one();
  }
  void Take() {
    std::unique_lock lock(mutex_);
    condition_.wait(lock, [&] { return count_ > 0; });
    --count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  int count_ = 0;
};

class RealRunner : public ThreadRunner, private ThreadSwitch {
 public:
  RealRunner(int threads, Kernel kernel)
      : kernel_(std::move(kernel)), sync_(threads, this), of_threads_(static_cast<size_t>(threads)) {
    for (int thread = 0; thread < threads; ++thread) {
      threads_.emplace_back([this, thread] { RunThread(thread); });
    }
  }
  ~RealRunner() override {
    stopping_ = true;
    for (PerThread& of : of_threads_) of.begin.Give();
    for (std::thread& thread : threads_) thread.join();
  }

  BlockSync& sync() override { return sync_; }

  void RunBlock() override {
    sync_.Begin();
    for (PerThread& of : of_threads_) of.begin.Give();
    for (PerThread& of : of_threads_) of.end.Take();
  }

 private:
  /// Signals of each thread alone: one that all wait for would order them.
  struct PerThread {
    Signal begin, wake, end;
  };

  void RunThread(int thread) {
    PerThread& own = of_threads_[static_cast<size_t>(thread)];
    while (true) {
      own.begin.Take();
      if (stopping_) return;
      kernel_.enter(thread);
      kernel_.run(thread);
      sync_.Done(thread);
      own.end.Give();
    }
  }
  void Wait(int thread) override { of_threads_[static_cast<size_t>(thread)].wake.Take(); }
  void Wake(int thread) override { of_threads_[static_cast<size_t>(thread)].wake.Give(); }

  const Kernel kernel_;
  BlockSync sync_;
  std::vector<PerThread> of_threads_;
  std::vector<std::thread> threads_;
  bool stopping_ = false;
};

}  // namespace

std::unique_ptr<ThreadRunner> MakeRealRunner(int threads, const ThreadRunner::Kernel& kernel) {
  return std::make_unique<RealRunner>(threads, kernel);
}

}  // namespace trainwright::cuda_emulation
