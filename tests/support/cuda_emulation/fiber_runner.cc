#include <deque>
#include <memory>
#include <vector>

#include "tests/support/cuda_emulation/fiber.h"
#include "tests/support/cuda_emulation/thread_runner.h"

namespace trainwright::cuda_emulation {
namespace {

class FiberRunner;

/// The fibers of a thread of the host, which serve every launch.
struct FiberPool {
  Fiber main;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Fiber*> idle;
  Fiber* current = &main;
  FiberRunner* runner = nullptr;  ///< of the launch that runs

  void SwitchTo(Fiber* next) {
    Fiber* const from = current;
    current = next;
    if (from != next) from->SwitchTo(next);
  }
};

FiberPool& Pool() {
  static thread_local FiberPool pool;
  return pool;
}

class FiberRunner : public ThreadRunner, private ThreadSwitch {
 public:
  FiberRunner(int threads, Kernel kernel)
      : threads_(threads),
        kernel_(std::move(kernel)),
        sync_(threads, this),
        fibers_(static_cast<size_t>(threads)) {
    Pool().runner = this;
  }
  ~FiberRunner() override { Pool().runner = nullptr; }

  BlockSync& sync() override { return sync_; }

  void RunBlock() override {
    sync_.Begin();
    begun_ = 0;
    Pool().SwitchTo(IdleFiber());
  }

  /// What a fiber does: threads of block after block, for ever.
  void RunThreads() {
    while (begun_ < threads_ && !sync_.failed()) {
      const int thread = begun_++;
      kernel_.enter(thread);
      kernel_.run(thread);
      sync_.Done(thread);
    }
    Pool().idle.push_back(Pool().current);
    Next();
  }

 private:
  void Wait(int thread) override {
    fibers_[static_cast<size_t>(thread)] = Pool().current;
    Next();
    kernel_.enter(thread);
  }
  void Wake(int thread) override { ready_.push_back(thread); }

  /// Goes on with a thread that has not begun, or one that has been woken, or the end of the block.
  void Next() {
    if (begun_ < threads_ && !sync_.failed()) return Pool().SwitchTo(IdleFiber());
    if (ready_.empty()) return Pool().SwitchTo(&Pool().main);
    const int thread = ready_.front();
    ready_.pop_front();
    Pool().SwitchTo(fibers_[static_cast<size_t>(thread)]);
  }

  static Fiber* IdleFiber() {
    FiberPool& pool = Pool();
    if (pool.idle.empty()) {
      pool.fibers.push_back(std::make_unique<Fiber>([&pool] {
        while (true) pool.runner->RunThreads();
      }));
      return pool.fibers.back().get();
    }
    Fiber* fiber = pool.idle.back();
    pool.idle.pop_back();
    return fiber;
  }

  const int threads_;
  const Kernel kernel_;
  BlockSync sync_;
  std::vector<Fiber*> fibers_;  ///< on which the threads wait
  std::deque<int> ready_;
  int begun_ = 0;
};

}  // namespace

std::unique_ptr<ThreadRunner> MakeFiberRunner(int threads, const ThreadRunner::Kernel& kernel) {
  return std::make_unique<FiberRunner>(threads, kernel);
}

}  // namespace trainwright::cuda_emulation
