// What device_graph_plugin.h asks of libtrainwright_cuda.so: CUDA's stream capture, while torch's allocator
// takes memory from a pool of the graph.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <map>
#include <mutex>
#include <optional>

#include "lib/device/device_graph_plugin.h"

namespace trainwright {

struct RecordedGraph {
  c10::DeviceIndex device = 0;
  c10::MempoolId_t pool;
  std::optional<c10::cuda::CUDAStream> before, side;
  cudaGraphExec_t work = nullptr;
  bool owns_pool = false;
};

}  // namespace trainwright

namespace trainwright::cuda {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

const char* WordsOf(cudaError_t status) {
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}

/// A number that no other pool has: torch's own count from 1.
c10::MempoolId_t NextPool() {
  static std::atomic<uint64_t> next = uint64_t{1} << 32;
  return {next++, 0};
}

/// Makes `later` wait for what is queued on `earlier`.
cudaError_t Order(cudaStream_t earlier, cudaStream_t later) {
  cudaEvent_t event = nullptr;
  cudaError_t status = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  if (status != cudaSuccess) return status;
  status = cudaEventRecord(event, earlier);
  if (status == cudaSuccess) status = cudaStreamWaitEvent(later, event, 0);
  cudaEventDestroy(event);  // once it has happened
  return status;
}

/// One of a device for all its graphs: cuBLAS keeps a workspace for each stream that it has seen. Nothing is
/// captured on the default stream.
c10::cuda::CUDAStream SideStream(c10::DeviceIndex device) {
  static std::mutex mutex;
  static std::map<c10::DeviceIndex, c10::cuda::CUDAStream> streams;
  const std::lock_guard lock(mutex);
  const auto known = streams.find(device);
  if (known != streams.end()) return known->second;
  return streams.emplace(device, c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device))
      .first->second;
}

const char* Begin(int32_t device, RecordedGraph** made) {
  auto* const graph = *made = new RecordedGraph;
  graph->device = static_cast<c10::DeviceIndex>(device);
  graph->pool = NextPool();
  graph->before = c10::cuda::getCurrentCUDAStream(graph->device);
  graph->side = SideStream(graph->device);
  if (const cudaError_t status = Order(graph->before->stream(), graph->side->stream());
      status != cudaSuccess) {
    return WordsOf(status);
  }
  allocator::beginAllocateToPool(graph->device, graph->pool,
                                 [stream = graph->side->stream()](cudaStream_t of) { return of == stream; });
  graph->owns_pool = true;
  // Of this thread alone: those that read data take pinned memory meanwhile.
  const cudaError_t status = cudaStreamBeginCapture(graph->side->stream(), cudaStreamCaptureModeThreadLocal);
  if (status != cudaSuccess) {
    allocator::endAllocateToPool(graph->device, graph->pool);
    return WordsOf(status);
  }
  c10::cuda::setCurrentCUDAStream(*graph->side);
  return nullptr;
}

const char* End(RecordedGraph* graph, bool complete) {
  cudaGraph_t captured = nullptr;
  cudaError_t status = cudaStreamEndCapture(graph->side->stream(), &captured);
  allocator::endAllocateToPool(graph->device, graph->pool);
  c10::cuda::setCurrentCUDAStream(*graph->before);
  if (status == cudaSuccess && complete) status = cudaGraphInstantiate(&graph->work, captured, 0);
  if (captured != nullptr) cudaGraphDestroy(captured);
  if (status != cudaSuccess) cudaGetLastError();  // it is told here, and not by the next launch
  return WordsOf(status);
}

const char* LaunchGraph(RecordedGraph* graph) {
  return WordsOf(cudaGraphLaunch(graph->work, c10::cuda::getCurrentCUDAStream(graph->device).stream()));
}

void Destroy(RecordedGraph* graph) {
  const c10::cuda::CUDAGuard guard(graph->device);
  cudaDeviceSynchronize();
  if (graph->work != nullptr) cudaGraphExecDestroy(graph->work);
  if (graph->owns_pool) allocator::releasePool(graph->device, graph->pool);
  delete graph;
}

constexpr DeviceGraphPlugin kPlugin = {
    .begin = &Begin, .end = &End, .launch = &LaunchGraph, .destroy = &Destroy};

}  // namespace
}  // namespace trainwright::cuda

extern "C" [[gnu::visibility("default")]] const trainwright::DeviceGraphPlugin* trainwright_device_graph() {
  return &trainwright::cuda::kPlugin;
}
