#include "tests/support/cuda_emulation/cuda_emulation.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "tests/support/cuda_emulation/kernel_symbols.h"
#include "tests/support/cuda_emulation/thread_runner.h"

namespace trainwright::cuda_emulation {
namespace {

thread_local constinit cudaError_t last_error = cudaSuccess;

/// What the launches of a process share. The mutex `launching` is held by the one launch that runs.
struct Emulator {
  std::mutex launching, mutex;
  Options options;
  std::map<std::string, int64_t> launches;
  LaunchObserver* observer = nullptr;
};

Emulator& TheEmulator() {
  static Emulator emulator;
  return emulator;
}

/// Of compute capability 7.5 to 9.0. \source CUDA C++ Programming Guide, compute capabilities
bool ValidShape(dim3 grid, dim3 block) {
  const auto within = [](unsigned size, unsigned most) { return size >= 1 && size <= most; };
  return within(grid.x, 0x7FFFFFFFu) && within(grid.y, 65535) && within(grid.z, 65535) &&
         within(block.x, 1024) && within(block.y, 1024) && within(block.z, 64) &&
         uint64_t{block.x} * block.y * block.z <= 1024;
}

/// The numbers of the blocks of a launch in the order in which they run.
std::vector<uint64_t> BlockOrder(uint64_t blocks, uint64_t seed) {
  std::vector<uint64_t> order(blocks);
  std::iota(order.begin(), order.end(), uint64_t{0});
  if (seed == 0) return order;
  const Rng rng(seed, "blocks");
  for (uint64_t i = blocks; i > 1; --i) std::swap(order[i - 1], order[rng.Bits(i) % i]);
  return order;
}

/// Calls the observer, if there is one, before and after.
class Observed {
 public:
  Observed(LaunchObserver* observer, const std::string& name) : observer_(observer), name_(name) {
    if (observer_ != nullptr) observer_->BeforeKernel(name_);
  }
  ~Observed() {
    if (observer_ != nullptr) observer_->AfterKernel(name_);
  }

 private:
  LaunchObserver* observer_;
  const std::string& name_;
};

uint3 Position(uint64_t number, dim3 shape) {
  return {static_cast<unsigned>(number % shape.x), static_cast<unsigned>(number / shape.x % shape.y),
          static_cast<unsigned>(number / shape.x / shape.y)};
}

}  // namespace

BlockOfThread& CurrentBlock() {
  static thread_local BlockOfThread block;
  return block;
}

void SetOptions(const Options& options) {
  const std::lock_guard lock(TheEmulator().mutex);
  TheEmulator().options = options;
}

std::map<std::string, int64_t> LaunchCounts() {
  const std::lock_guard lock(TheEmulator().mutex);
  return TheEmulator().launches;
}

void ResetLaunchCounts() {
  const std::lock_guard lock(TheEmulator().mutex);
  TheEmulator().launches.clear();
}

void SetLaunchObserver(LaunchObserver* observer) {
  const std::lock_guard lock(TheEmulator().mutex);
  TheEmulator().observer = observer;
}

cudaError_t LaunchThreads(const void* kernel, dim3 grid, dim3 block, const std::function<void()>& thread) {
  if (!ValidShape(grid, block)) return last_error = cudaErrorInvalidConfiguration;
  const KernelSymbols& symbols = SymbolsOf(kernel);
  const std::lock_guard launching(TheEmulator().launching);
  Options options;
  LaunchObserver* observer = nullptr;
  {
    const std::lock_guard lock(TheEmulator().mutex);
    ++TheEmulator().launches[symbols.name];
    options = TheEmulator().options;
    observer = TheEmulator().observer;
  }
  uint3 block_index{};
  BlockSync* sync = nullptr;
  const ThreadRunner::Kernel of_threads = {
      .enter =
          [&](int number) {
            CurrentBlock() = {sync, number};
            threadIdx = Position(static_cast<uint64_t>(number), block);
            blockIdx = block_index;
            blockDim = block;
            gridDim = grid;
          },
      .run =
          [&](int) {
            try {
              thread();
            } catch (const AbandonedThread&) {
            } catch (const std::exception& error) {
              sync->Fail(std::string("throws an exception: ") + error.what());
            }
          }};
  const int threads = static_cast<int>(block.x * block.y * block.z);
  const Observed observed(observer, symbols.name);
  const auto runner = options.threads == Threads::kReal ? MakeRealRunner(threads, of_threads)
                                                        : MakeFiberRunner(threads, of_threads);
  sync = &runner->sync();
  for (const uint64_t number : BlockOrder(uint64_t{grid.x} * grid.y * grid.z, options.block_order_seed)) {
    block_index = Position(number, grid);
    for (const std::span<std::byte> variable : symbols.shared) {
      std::memset(variable.data(), 0xFF, variable.size());
    }
    runner->RunBlock();
    if (sync->failed()) {
      throw Error(ErrorCode::kInternal, symbols.name, sync->problem(),
                  "block " + std::to_string(block_index.x) + ", " + std::to_string(block_index.y) + ", " +
                      std::to_string(block_index.z));
    }
  }
  return cudaSuccess;
}

}  // namespace trainwright::cuda_emulation

cudaError_t cudaGetLastError() {
  const cudaError_t error = trainwright::cuda_emulation::last_error;
  trainwright::cuda_emulation::last_error = cudaSuccess;
  return error;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
  }
  return "unknown";
}

const char* cudaGetErrorString(cudaError_t error) {
  return cudaGetErrorName(error);
}
