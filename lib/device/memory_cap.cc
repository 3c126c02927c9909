#include "lib/device/memory_cap.h"

#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "lib/base/error.h"
#include "lib/io/process_memory.h"

namespace trainwright {
namespace {

constexpr size_t kRoomForLibraries = size_t{32} << 20;
/// Below it a tensor is not looked at: many small ones would pay for it, and what they add up to is little.
constexpr size_t kLeastLookedAt = size_t{1} << 20;

/// Whether the system would give this much more now, counted as it counts private writable memory.
bool CanMap(size_t size_bytes) {
  void* memory = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1, /*offset=*/0);
  if (memory == MAP_FAILED) return false;
  munmap(memory, size_bytes);
  return true;
}

/// The allocator of tensors that leaves room for libraries.
class LeavingAllocator : public c10::Allocator {
 public:
  LeavingAllocator(c10::Allocator* allocator, size_t room_bytes)
      : allocator_(allocator), room_bytes_(room_bytes) {}
  c10::DataPtr allocate(size_t size_bytes) override {
    // In torch's words, which memory_error.h knows.
    TORCH_CHECK(size_bytes < kLeastLookedAt || CanMap(size_bytes + room_bytes_),
                "DefaultCPUAllocator: can't allocate memory: you tried to allocate ", size_bytes, " bytes.");
    return allocator_->allocate(size_bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return allocator_->raw_deleter(); }
  void copy_data(void* to, const void* from, size_t size_bytes) const override {
    allocator_->copy_data(to, from, size_bytes);
  }

 private:
  c10::Allocator* allocator_;
  size_t room_bytes_;
};

/// The lowest limit on the memory of this process, in bytes.
std::optional<size_t> LowestLimit() {
  std::optional<size_t> lowest;
  for (const auto resource : {RLIMIT_DATA, RLIMIT_AS}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) continue;
    lowest = std::min<size_t>(lowest.value_or(limit.rlim_cur), limit.rlim_cur);
  }
  return lowest;
}

}  // namespace

void KeepRoomForLibraries() {
  const std::optional<size_t> limit = LowestLimit();
  if (!limit) return;
  // What is looked at is mapped of its own and goes back when it is freed; glibc would raise this threshold
  // with every larger piece that is freed, and keep what then comes out of its heap.
  mallopt(M_MMAP_THRESHOLD, static_cast<int>(kLeastLookedAt));
  // torch keeps a plain pointer to it for the life of the process.
  static LeavingAllocator allocator(c10::GetCPUAllocator(), std::min(kRoomForLibraries, *limit / 8));
  c10::SetCPUAllocator(&allocator);
}

int64_t CapHostMemory(double fraction) {
  if (!(fraction > 0 && fraction <= 1)) {
    throw Error(ErrorCode::kUsage, "--mem-fraction", "must be above 0 and at most 1");
  }
  // OpenMP ends the process where it gets no thread; so it starts them, and takes their stacks, before the
  // cap.
  at::parallel_for(0, at::get_num_threads(), 1, [](int64_t, int64_t) {});
  const int64_t available = AvailableMemoryBytes(), taken = PrivateWritableBytes();
  if (available == 0 || taken == 0) {
    throw Error(ErrorCode::kIo, "--mem-fraction", "the system does not report how much memory there is");
  }
  const auto cap = static_cast<int64_t>(fraction * static_cast<double>(available));
  rlimit limit{};
  if (getrlimit(RLIMIT_DATA, &limit) != 0) throw SystemError("--mem-fraction", "getrlimit", errno);
  limit.rlim_cur = std::min(limit.rlim_cur, static_cast<rlim_t>(taken + cap));
  if (setrlimit(RLIMIT_DATA, &limit) != 0) throw SystemError("--mem-fraction", "setrlimit", errno);
  return cap;
}

}  // namespace trainwright
