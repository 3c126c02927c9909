/// The part of libtrainwright_cuda.so that records what the GPU does, by CUPTI's activity records.
///
/// CUPTI asks for buffers and gives them back full, from threads of its own; they are kept until the end, so
/// that nothing is decoded while steps are timed. Where they would take more than kMostBytes CUPTI gets none
/// and drops records, which it counts. Times are of CLOCK_MONOTONIC: CUPTI is told to use that clock.
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>
#include <cupti.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <utility>
#include <vector>

#include "lib/device/gpu_activity_plugin.h"

namespace trainwright::cuda {
namespace {

constexpr size_t kBufferBytes = size_t{8} << 20, kAlignment = 8, kMostBytes = size_t{2} << 30;
constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                         CUPTI_ACTIVITY_KIND_MEMSET};

// As ActivityKind of lib/profile/device_activity.h has them.
constexpr int32_t kKernel = 0, kCopyToDevice = 1, kCopyToHost = 2, kCopyOnDevice = 3, kFill = 4;

/// What CUPTI's callbacks, which take no context, write to. It lives as long as the process, since CUPTI may
/// call until the end.
class Buffers {
 public:
  static Buffers& Get() {
    static auto* const buffers = new Buffers;
    return *buffers;
  }

  uint8_t* New() {
    const std::lock_guard lock(mutex_);
    if (bytes_ + kBufferBytes > kMostBytes) return nullptr;
    bytes_ += kBufferBytes;
    return static_cast<uint8_t*>(std::aligned_alloc(kAlignment, kBufferBytes));
  }

  void Keep(uint8_t* buffer, size_t valid_bytes, CUcontext context, uint32_t stream) {
    size_t dropped = 0;
    cuptiActivityGetNumDroppedRecords(context, stream, &dropped);
    const std::lock_guard lock(mutex_);
    dropped_ += static_cast<int64_t>(dropped);
    full_.emplace_back(buffer, valid_bytes);
  }

  std::vector<std::pair<uint8_t*, size_t>> Take(int64_t* dropped) {
    const std::lock_guard lock(mutex_);
    bytes_ = 0;
    *dropped = std::exchange(dropped_, 0);
    return std::exchange(full_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<uint8_t*, size_t>> full_;
  size_t bytes_ = 0;
  int64_t dropped_ = 0;
};

void CUPTIAPI NewBuffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  *buffer = Buffers::Get().New();
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;  // as many as fit
}

void CUPTIAPI FullBuffer(CUcontext context, uint32_t stream, uint8_t* buffer, size_t /*size*/,
                         size_t valid_bytes) {
  Buffers::Get().Keep(buffer, valid_bytes, context, stream);
}

uint64_t CUPTIAPI MonotonicNanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

const char* WordsOf(CUptiResult result) {
  const char* words = "unknown error";
  cuptiGetResultString(result, &words);
  return words;
}

int32_t KindOfCopy(uint8_t copy_kind) {
  switch (copy_kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
      return kCopyToDevice;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
      return kCopyToHost;
    default:
      return kCopyOnDevice;
  }
}

template <typename Record>
GpuActivityRecord Common(const Record& record, int32_t kind) {
  return {.kind = kind,
          .name = nullptr,
          .device = static_cast<int32_t>(record.deviceId),
          .stream = static_cast<int64_t>(record.streamId),
          .start_ns = static_cast<int64_t>(record.start),
          .end_ns = static_cast<int64_t>(record.end),
          .bytes = 0};
}

/// \returns whether the record is one of those
bool Decode(const CUpti_Activity* activity, GpuActivityRecord* record) {
  switch (activity->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(activity);
      *record = Common(*kernel, kKernel);
      record->name = kernel->name;
      return true;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto* copy = reinterpret_cast<const CUpti_ActivityMemcpy6*>(activity);
      *record = Common(*copy, KindOfCopy(copy->copyKind));
      record->bytes = static_cast<int64_t>(copy->bytes);
      return true;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto* fill = reinterpret_cast<const CUpti_ActivityMemset4*>(activity);
      *record = Common(*fill, kFill);
      record->bytes = static_cast<int64_t>(fill->bytes);
      return true;
    }
    default:
      return false;
  }
}

void Wait(int32_t device) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
  cudaDeviceSynchronize();
}

const char* Start(int32_t device) {
  Wait(device);
  CUptiResult result = cuptiActivityRegisterTimestampCallback(&MonotonicNanoseconds);
  if (result == CUPTI_SUCCESS) result = cuptiActivityRegisterCallbacks(&NewBuffer, &FullBuffer);
  for (const CUpti_ActivityKind kind : kKinds) {
    if (result == CUPTI_SUCCESS) result = cuptiActivityEnable(kind);
  }
  return result == CUPTI_SUCCESS ? nullptr : WordsOf(result);
}

int64_t Stop(int32_t device, void (*visit)(void* context, const GpuActivityRecord* record), void* context) {
  Wait(device);
  for (const CUpti_ActivityKind kind : kKinds) cuptiActivityDisable(kind);
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  int64_t dropped = 0;
  for (const auto& [buffer, valid_bytes] : Buffers::Get().Take(&dropped)) {
    CUpti_Activity* activity = nullptr;
    while (cuptiActivityGetNextRecord(buffer, valid_bytes, &activity) == CUPTI_SUCCESS) {
      GpuActivityRecord record;
      if (Decode(activity, &record)) visit(context, &record);
    }
    std::free(buffer);
  }
  return dropped;
}

constexpr GpuActivityPlugin kPlugin = {.start = &Start, .wait = &Wait, .stop = &Stop};

}  // namespace
}  // namespace trainwright::cuda

extern "C" [[gnu::visibility("default")]] const trainwright::GpuActivityPlugin* trainwright_gpu_activity() {
  return &trainwright::cuda::kPlugin;
}
