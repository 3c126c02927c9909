// What device_graph_plugin.h asks of libtrainwright_cuda.so: CUDA's stream capture, while torch's allocator
// takes memory from a pool of the graph.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <cstdint>
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
  bool owns_pool = false;  ///< whether it is one of the pool's users
};

}  // namespace trainwright

namespace trainwright::cuda {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

const char* WordsOf(cudaError_t status) {
  if (status == cudaSuccess) return nullptr;
  cudaGetLastError();  // it is told here, and not by the next launch
  return cudaGetErrorString(status);
}

/// The pool of all graphs that there are, which are launched one after the other, so that they share the
/// memory of what lives within their work alone. A pool that lost its last graph is not used again.
class SharedPool {
 public:
  static SharedPool& Get() {
    static SharedPool pool;
    return pool;
  }
  c10::MempoolId_t Take() {
    const std::lock_guard lock(mutex_);
    if (users_++ == 0) id_ = {next_++, 0};
    return id_;
  }
  void Return() {
    const std::lock_guard lock(mutex_);
    --users_;
  }

 private:
  std::mutex mutex_;
  uint64_t next_ = uint64_t{1} << 32;  // torch's own count from 1
  int64_t users_ = 0;
  c10::MempoolId_t id_;
};

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
  graph->before = c10::cuda::getCurrentCUDAStream(graph->device);
  graph->side = SideStream(graph->device);
  if (const cudaError_t status = Order(graph->before->stream(), graph->side->stream());
      status != cudaSuccess) {
    return WordsOf(status);
  }
  // While work is recorded the allocator gives nothing back that it keeps free.
  allocator::emptyCache();
  graph->pool = SharedPool::Get().Take();
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
  return WordsOf(status);
}

const char* LaunchGraph(RecordedGraph* graph) {
  return WordsOf(cudaGraphLaunch(graph->work, c10::cuda::getCurrentCUDAStream(graph->device).stream()));
}

void Destroy(RecordedGraph* graph) {
  const c10::cuda::CUDAGuard guard(graph->device);
  cudaDeviceSynchronize();
  if (graph->work != nullptr) cudaGraphExecDestroy(graph->work);
  if (graph->owns_pool) {
    allocator::releasePool(graph->device, graph->pool);
    SharedPool::Get().Return();
  }
  delete graph;
}

constexpr DeviceGraphPlugin kPlugin = {
    .begin = &Begin, .end = &End, .launch = &LaunchGraph, .destroy = &Destroy};

}  // namespace
}  // namespace trainwright::cuda

extern "C" [[gnu::visibility("default")]] const trainwright::DeviceGraphPlugin* trainwright_device_graph() {
  return &trainwright::cuda::kPlugin;
}
