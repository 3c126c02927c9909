// The emulator itself: that it computes as CUDA does, and finds what kernels do wrong.
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "lib/nn/cuda/launch.h"
#include "tests/cuda/cuda_memory.h"

namespace trainwright::cuda {
namespace {

using testing::HasSubstr;

/// Sums of blocks of 64 threads by shared memory.
__global__ void SumKernel(const int* values, int* sums) {
  __shared__ int shared[64];
  shared[threadIdx.x] = values[blockIdx.x * blockDim.x + threadIdx.x];
  for (unsigned step = 32; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step) shared[threadIdx.x] += shared[threadIdx.x + step];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = shared[0];
}

__global__ void NoBarrierKernel(int* out) {
  __shared__ int shared[64];
  shared[threadIdx.x] = static_cast<int>(threadIdx.x);
  out[threadIdx.x] = shared[(threadIdx.x + 1) % 64];
}

__global__ void SomeReturnKernel() {
  if (threadIdx.x >= 40) return;
  __syncthreads();
}

__global__ void TwoBarriersKernel() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

__global__ void HalfShuffleKernel(int* out) {
  if (threadIdx.x % 2 == 0) out[threadIdx.x] = __shfl_xor_sync(0x55555555u, 1, 2);
  __syncthreads();
}

__global__ void ReturnedLaneKernel(int* out) {
  if (threadIdx.x == 7) return;
  out[threadIdx.x] = __shfl_xor_sync(0xFFFFFFFFu, 1, 2);
}

__global__ void ShuffleAndBarrierKernel(int* out) {
  if (threadIdx.x < 32) out[threadIdx.x] = __shfl_xor_sync(0xFFFFFFFFu, 1, 1);
  if (threadIdx.x == 3) {
    __syncthreads();
  } else {
    out[threadIdx.x] = __shfl_xor_sync(0xFFFFFFFFu, 1, 1);
  }
}

__global__ void ShufflesKernel(int* down, int* up, int* across, int* first) {
  const int lane = static_cast<int>(threadIdx.x);
  down[lane] = __shfl_down_sync(0xFFFFFFFFu, lane, 3);
  up[lane] = __shfl_up_sync(0xFFFFFFFFu, lane, 5);
  across[lane] = __shfl_xor_sync(0xFFFFFFFFu, lane, 16);
  first[lane] = __shfl_sync(0xFFFFFFFFu, lane, 1, 8);
}

__global__ void PositionKernel(int* seen) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  atomicAdd(&seen[block * blockDim.x * blockDim.y * blockDim.z + thread], 1);
}

__global__ void SharedBeforeWriteKernel(float* out) {
  __shared__ float shared[1];
  out[blockIdx.x] = shared[0];
  shared[0] = 1;
}

template <typename T>
__global__ void SharedOfTemplateKernel(T* out) {
  __shared__ T shared[2];
  out[blockIdx.x] = shared[1];
  shared[1] = 1;
}

[[maybe_unused]] __global__ void OverrunKernel(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x + 1];
}

[[maybe_unused]] __global__ void SharedOverrunKernel(float* out, int size) {
  __shared__ float shared[64];
  shared[threadIdx.x + static_cast<unsigned>(size)] = 1;
  __syncthreads();
  out[threadIdx.x] = shared[threadIdx.x];
}

struct alignas(16) FourFloats {
  float values[4];
};
[[maybe_unused]] __global__ void PackKernel(const float* in, float* out) {
  const FourFloats pack = *reinterpret_cast<const FourFloats*>(in);
  out[0] = pack.values[0];
}

/// Every block needs what the one before it wrote.
__global__ void BlocksInOrderKernel(int* out) {
  out[blockIdx.x] = blockIdx.x == 0 ? 1 : out[blockIdx.x - 1] + 1;
}

std::string ProblemOf(const std::function<void()>& launch) {
  return test::MessageOf(launch);
}

TEST(CudaEmulationTest, BarriersLetThreadsSeeWhatOthersWrote) {
  std::vector<int> values(3 * 64), sums(3);
  std::iota(values.begin(), values.end(), 1);
  EXPECT_EQ(Launch(SumKernel, 3, 64, nullptr, values.data(), sums.data()), cudaSuccess);
  EXPECT_THAT(sums, testing::ElementsAre(64 * 65 / 2, 64 * 65 / 2 + 64 * 64, 64 * 65 / 2 + 2 * 64 * 64));
}

TEST(CudaEmulationTest, RealThreadsComputeTheSame) {
  std::vector<int> values(3 * 64), sums(3);
  std::iota(values.begin(), values.end(), 1);
  cuda_emulation::SetOptions({.threads = cuda_emulation::Threads::kReal});
  EXPECT_EQ(Launch(SumKernel, 3, 64, nullptr, values.data(), sums.data()), cudaSuccess);
  const std::string problem = ProblemOf([] { Launch(SomeReturnKernel, 1, 64, nullptr); });
  cuda_emulation::SetOptions({});
  EXPECT_THAT(sums, testing::ElementsAre(64 * 65 / 2, 64 * 65 / 2 + 64 * 64, 64 * 65 / 2 + 2 * 64 * 64));
  EXPECT_THAT(problem, HasSubstr("SomeReturnKernel"));
}

TEST(CudaEmulationTest, EveryThreadOfEveryBlockRunsOnce) {
  const dim3 grid(3, 2, 2), block(5, 3, 2);
  std::vector<int> seen(3 * 2 * 2 * 5 * 3 * 2);
  EXPECT_EQ(Launch(PositionKernel, grid, block, nullptr, seen.data()), cudaSuccess);
  EXPECT_THAT(seen, testing::Each(1));
}

TEST(CudaEmulationTest, ShufflesMoveValuesBetweenLanes) {
  std::vector<int> down(32), up(32), across(32), first(32);
  Launch(ShufflesKernel, 1, 32, nullptr, down.data(), up.data(), across.data(), first.data());
  for (int lane = 0; lane < 32; ++lane) {
    const auto at = static_cast<size_t>(lane);
    EXPECT_EQ(down[at], lane < 29 ? lane + 3 : lane);
    EXPECT_EQ(up[at], lane >= 5 ? lane - 5 : lane);
    EXPECT_EQ(across[at], (lane + 16) % 32);
    EXPECT_EQ(first[at], lane / 8 * 8 + 1);
  }
}

TEST(CudaEmulationTest, LaunchesThatCudaRefusesAreRefused) {
  int* const none = nullptr;
  for (const dim3 grid : {dim3(0), dim3(1, 0), dim3(1, 65536), dim3(1, 1, 65536)}) {
    EXPECT_EQ(Launch(PositionKernel, grid, 32, nullptr, none), cudaErrorInvalidConfiguration);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  }
  for (const dim3 block : {dim3(0), dim3(1025), dim3(32, 33), dim3(1, 1, 65)}) {
    EXPECT_EQ(Launch(PositionKernel, 1, block, nullptr, none), cudaErrorInvalidConfiguration);
  }
  cudaGetLastError();
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(CudaEmulationTest, ABarrierThatSomeThreadsMissIsAnErrorThatNamesTheKernel) {
  const std::string problem = ProblemOf([] { Launch(SomeReturnKernel, 1, 64, nullptr); });
  EXPECT_THAT(problem, HasSubstr("SomeReturnKernel"));
  EXPECT_THAT(problem, HasSubstr("divergent"));
  EXPECT_THAT(problem, HasSubstr("has returned"));
  const std::string two = ProblemOf([] { Launch(TwoBarriersKernel, 1, 64, nullptr); });
  EXPECT_THAT(two, HasSubstr("TwoBarriersKernel: threads of a block wait at different barriers"));
}

TEST(CudaEmulationTest, AShuffleWithoutAllLanesIsAnError) {
  std::vector<int> out(64);
  EXPECT_THAT(ProblemOf([&] { Launch(HalfShuffleKernel, 1, 32, nullptr, out.data()); }),
              HasSubstr("HalfShuffleKernel"));
  EXPECT_THAT(ProblemOf([&] { Launch(ReturnedLaneKernel, 1, 32, nullptr, out.data()); }),
              HasSubstr("ReturnedLaneKernel: a shuffle waits for a lane that is over: thread 7"));
  EXPECT_THAT(ProblemOf([&] { Launch(ShuffleAndBarrierKernel, 1, 32, nullptr, out.data()); }),
              HasSubstr("divergent"));
}

TEST(CudaEmulationTest, AKernelRunsAfterOneThatFailed) {
  ProblemOf([] { Launch(SomeReturnKernel, 2, 64, nullptr); });
  std::vector<int> values(64, 1), sums(1);
  Launch(SumKernel, 1, 64, nullptr, values.data(), sums.data());
  EXPECT_EQ(sums[0], 64);
}

TEST(CudaEmulationTest, SharedMemoryHasNoValueBeforeTheFirstWriteOfABlock) {
  std::vector<float> out(3);
  Launch(SharedBeforeWriteKernel, 3, 1, nullptr, out.data());
  EXPECT_THAT(out, testing::Each(testing::IsNan()));
  std::vector<double> doubles(3);
  Launch(SharedOfTemplateKernel<double>, 3, 1, nullptr, doubles.data());
  EXPECT_THAT(doubles, testing::Each(testing::IsNan()));
}

TEST(CudaEmulationTest, BlocksThatNeedOneAnotherShowInAnotherOrder) {
  std::vector<int> out(16, -1);
  Launch(BlocksInOrderKernel, 16, 1, nullptr, out.data());
  EXPECT_EQ(out[15], 16);
  std::vector<int> shuffled(16, -1);
  cuda_emulation::SetOptions({.block_order_seed = 5});
  Launch(BlocksInOrderKernel, 16, 1, nullptr, shuffled.data());
  cuda_emulation::SetOptions({});
  EXPECT_NE(out, shuffled);
}

TEST(CudaEmulationTest, LaunchesAreCountedByTheNameOfTheKernel) {
  std::vector<double> out(2);
  cuda_emulation::ResetLaunchCounts();
  Launch(SharedOfTemplateKernel<double>, 2, 1, nullptr, out.data());
  Launch(SharedOfTemplateKernel<double>, 1, 1, nullptr, out.data());
  EXPECT_THAT(cuda_emulation::LaunchCounts(),
              testing::ElementsAre(testing::Pair("SharedOfTemplateKernel", 2)));
}

TEST(CudaEmulationTest, LaunchesOfSeveralThreadsOfTheHostRunOneAfterAnother) {
  std::vector<std::thread> threads;
  std::vector<int> totals(4);
  for (size_t i = 0; i < totals.size(); ++i) {
    threads.emplace_back([&totals, i] {
      std::vector<int> values(2 * 64, static_cast<int>(i)), sums(2);
      Launch(SumKernel, 2, 64, nullptr, values.data(), sums.data());
      totals[i] = sums[0] + sums[1];
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(totals, testing::ElementsAre(0, 128, 256, 384));
}

TEST(CudaEmulationTest, AnObserverIsToldBeforeAndAfterEveryKernel) {
  struct Recorder : cuda_emulation::LaunchObserver {
    void BeforeKernel(const std::string& name) override { events.push_back("before " + name); }
    void AfterKernel(const std::string& name) override { events.push_back("after " + name); }
    std::vector<std::string> events;
  } recorder;
  cuda_emulation::SetLaunchObserver(&recorder);
  ProblemOf([] { Launch(SomeReturnKernel, 1, 64, nullptr); });
  cuda_emulation::SetLaunchObserver(nullptr);
  EXPECT_THAT(recorder.events, testing::ElementsAre("before SomeReturnKernel", "after SomeReturnKernel"));
}

// What the sanitizers find ends the process, so these cases watch a copy of it. Each is compiled where the
// sanitizer is that finds it.
#if defined(__SANITIZE_ADDRESS__)
TEST(CudaEmulationDeathTest, AnOverrunIsFound) {
  Memory<float> in(64, Access::kWide), out(64, Access::kWide);
  EXPECT_DEATH(Launch(OverrunKernel, 1, 64, nullptr, in.data(), out.data()), "heap-buffer-overflow");
}

TEST(CudaEmulationDeathTest, AnOverrunOfSharedMemoryIsFound) {
  Memory<float> out(64, Access::kWide);
  EXPECT_EQ(Launch(SharedOverrunKernel, 1, 64, nullptr, out.data(), 0), cudaSuccess);
  EXPECT_DEATH(Launch(SharedOverrunKernel, 1, 64, nullptr, out.data(), 1),
               "global-buffer-overflow|out of bounds");
}

TEST(CudaEmulationDeathTest, AMisalignedPackIsFound) {
  Memory<float> in(8, Access::kNarrow), out(1, Access::kWide);
  EXPECT_DEATH(Launch(PackKernel, 1, 1, nullptr, in.data(), out.data()), "misaligned address");
}
#endif
#if defined(__SANITIZE_THREAD__)
TEST(CudaEmulationDeathTest, AMissingBarrierIsFound) {
  std::vector<int> out(64);
  EXPECT_DEATH(
      {
        Launch(NoBarrierKernel, 1, 64, nullptr, out.data());
        std::exit(0);
      },
      "data race");
}
#else
TEST(CudaEmulationTest, AMissingBarrierShowsInWhatThreadsRead) {
  std::vector<int> out(64);
  Launch(NoBarrierKernel, 1, 64, nullptr, out.data());
  EXPECT_EQ(out[62], -1);  // the next thread had not written yet
}
#endif

}  // namespace
}  // namespace trainwright::cuda
