/// CUDA kernels on the host, so that they can be tested where there is no GPU: lib/nn/cuda/launch.h starts
/// them through this where the compiler is not nvcc.
///
/// What is found: reads and writes out of bounds and misaligned packs (AddressSanitizer and UBSan see every
/// access), a barrier that some threads of a block do not reach, a shuffle without all lanes of the warp, a
/// read of shared memory before its first write (NaN); with real threads under ThreadSanitizer what two
/// threads of a block access without a barrier in between; with a shuffled order blocks that need each other.
/// What is not: races between blocks, what a GPU rounds otherwise (its expf, contracted products), speed.
///
/// How to use it from another target:
///
///   target_link_libraries(my_test PRIVATE trainwright_cuda_emulated)
///
/// which brings the functions of lib/nn/cuda/kernels.h, compiled from every lib/nn/**.cu, and a folder with
/// the stand-ins for <cuda_runtime_api.h>, <cuda_bf16.h> and <cuda_fp16.h>: no file of the CUDA toolkit is
/// read, and none may be in such a target. Torch may be linked. Kernels run inside the call that launches
/// them, whatever the stream; a LaunchObserver is told before and after.
///
/// Launches of several threads of the host run one after another. Errors of a kernel are thrown by the launch
/// as Error{kInternal} whose object is the kernel.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace trainwright::cuda_emulation {

enum class Threads {
  kFibers,  ///< the threads of a block take turns: quick, and always in the same order
  kReal,    ///< each is a thread of its own: slow, for ThreadSanitizer
};

/// What both kinds of threads share.
struct Options {
#if defined(__SANITIZE_THREAD__)
  Threads threads = Threads::kReal;
#else
  Threads threads = Threads::kFibers;
#endif
  uint64_t block_order_seed = 0;  ///< 0: blocks run in their order, else in a random one
};

/// For the launches from now on.
void SetOptions(const Options& options);

/// The launches of each kernel since the last reset, by its name without namespace and template arguments.
std::map<std::string, int64_t> LaunchCounts();
void ResetLaunchCounts();

/// Told of every kernel, in the thread that launches it: a "device" opens its memory to kernels alone so.
class LaunchObserver {
 public:
  virtual ~LaunchObserver() = default;
  virtual void BeforeKernel(const std::string& name) = 0;
  /// Also after one that failed.
  virtual void AfterKernel(const std::string& name) = 0;
};
/// \param observer outlives all launches, or null: none
void SetLaunchObserver(LaunchObserver* observer);

/// \param kernel address of the function
/// \param thread runs one thread of it
cudaError_t LaunchThreads(const void* kernel, dim3 grid, dim3 block, const std::function<void()>& thread);

/// What trainwright::cuda::Launch is without nvcc.
template <typename... Parameters, typename... Arguments>
cudaError_t Launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t,
                   const Arguments&... arguments) {
  return LaunchThreads(reinterpret_cast<const void*>(kernel), grid, block, [&] { kernel(arguments...); });
}

}  // namespace trainwright::cuda_emulation
