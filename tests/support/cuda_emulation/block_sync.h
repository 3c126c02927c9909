/// How the threads of a block wait for one another: barriers of the block, shuffles of a warp, and the errors
/// of kernels that do neither right.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <source_location>
#include <string>
#include <vector>

namespace trainwright::cuda_emulation {

/// Makes threads of a block wait and go on; each is woken once a wait, maybe before it waits.
class ThreadSwitch {
 public:
  virtual ~ThreadSwitch() = default;
  /// In thread `thread` itself.
  virtual void Wait(int thread) = 0;
  virtual void Wake(int thread) = 0;
};

/// Unwinds a thread of a block whose kernel has failed.
struct AbandonedThread {};

/// Thread safety: every thread of the block calls for itself. No lock orders threads of two warps but at
/// barriers of the whole block, so that ThreadSanitizer sees what only a barrier would order.
class BlockSync {
 public:
  /// \param threads of the block
  BlockSync(int threads, ThreadSwitch* thread_switch);

  /// Before each block.
  void Begin();
  /// \throws AbandonedThread as does Shuffle
  void Barrier(int thread, const std::source_location& where);
  /// Waits for all lanes of the warp, which must all be in the mask.
  /// \param source lane whose value is wanted; -1: none
  uint64_t Shuffle(int thread, unsigned mask, uint64_t value, int source, const std::source_location& where);
  /// A thread has returned from the kernel.
  void Done(int thread);
  /// Ends the block: every waiting thread is abandoned.
  void Fail(const std::string& problem);

  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  /// \returns why it failed; to be asked when all threads have ended
  const std::string& problem() const { return problem_; }

 private:
  enum class State : uint8_t { kRunning, kAtBarrier, kAtShuffle, kDone };
  struct Place {
    State state = State::kRunning;
    unsigned mask = 0;
    std::source_location where;
  };
  struct Warp {
    std::mutex mutex;
    int lanes = 0, arrived = 0, done = 0;
    std::array<uint64_t, 32> values[2] = {};  ///< of this shuffle and of the last, which others may read yet
    int turn = 0;
  };

  void Suspend(int thread);
  /// Lets all threads of [first, first + count) that are in `state` go on, and wakes them, but for one.
  void Release(int first, int count, State state, int but);
  /// Ends the shuffle of a warp, under its lock, if all its lanes have come.
  /// \returns whether it is over
  bool EndShuffle(int first, int but, std::string* problem);
  std::string ShuffleProblem(int first, int lanes) const;
  std::string BarrierProblem() const;
  /// \returns what nobody will end, or nothing if no thread waits
  std::string StuckProblem();
  std::string Describe(int thread) const;
  Place& place(int thread) { return places_[static_cast<size_t>(thread)]; }
  const Place& place(int thread) const { return places_[static_cast<size_t>(thread)]; }
  Warp& warp_of(int thread) { return *warps_[static_cast<size_t>(thread / 32)]; }

  const int threads_;
  ThreadSwitch* const switch_;
  std::vector<Place> places_;  ///< of a thread: under the lock of its warp at shuffles, else of the block
  std::vector<std::unique_ptr<Warp>> warps_;
  std::mutex mutex_;
  int arrived_ = 0;
  /// Threads that neither wait nor have returned. Relaxed: it must not order them.
  std::atomic<int> running_{0};
  std::atomic<bool> failed_{false};
  std::string problem_;
};

/// What a thread of a kernel calls.
class BlockOfThread {
 public:
  void Barrier(const std::source_location& where) const { sync->Barrier(thread, where); }
  uint64_t Shuffle(unsigned mask, uint64_t value, int source, const std::source_location& where) const {
    return sync->Shuffle(thread, mask, value, source, where);
  }

  BlockSync* sync = nullptr;
  int thread = 0;
};

/// Of the thread of the kernel that runs in this thread of the host.
BlockOfThread& CurrentBlock();

}  // namespace trainwright::cuda_emulation
