/// Runs all threads of one block after another block: as fibers that take turns, or as threads of the host.
#pragma once

#include <functional>
#include <memory>

#include "tests/support/cuda_emulation/block_sync.h"

namespace trainwright::cuda_emulation {

class ThreadRunner {
 public:
  virtual ~ThreadRunner() = default;
  /// A launch, by the numbers of the threads in a block.
  struct Kernel {
    /// Makes this thread of the host a thread of the block: before it begins, and when it goes on on a fiber.
    std::function<void(int thread)> enter;
    /// Runs it to its end; throws nothing.
    std::function<void(int thread)> run;
  };
  /// Runs every thread of a block to its end. Nothing of the block runs on afterwards.
  virtual void RunBlock() = 0;
  /// Of the block that runs.
  virtual BlockSync& sync() = 0;
};

/// A fiber runs one thread of the block after another until one waits; then the next fiber goes on with the
/// threads not begun yet. A kernel without barriers never switches.
std::unique_ptr<ThreadRunner> MakeFiberRunner(int threads, const ThreadRunner::Kernel& kernel);

/// Each is a thread of the host for all blocks of the launch. Within a block nothing but its own barriers and
/// shuffles orders them.
std::unique_ptr<ThreadRunner> MakeRealRunner(int threads, const ThreadRunner::Kernel& kernel);

}  // namespace trainwright::cuda_emulation
