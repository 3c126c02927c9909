#include "tests/support/refusing_device/device_clock.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/refusing_device/recorded_work.h"
#include "tests/support/refusing_device/refusing_device.h"
#include "tests/support/refusing_device/side_streams.h"

namespace trainwright::test {
namespace {

constexpr int kNotArrived = 0xFF;

/// A copy that the host knows nothing of yet.
struct Queued {
  char* pinned;
  size_t size;
  std::vector<char> arriving;  // to pinned memory; empty: from it
  size_t hash = 0;             // of what was read

  bool Overlaps(const void* begin, size_t bytes) const {
    const auto* other = static_cast<const char*>(begin);
    return pinned < other + bytes && other < pinned + size;
  }
};

size_t HashOf(const void* memory, size_t size) {
  return std::hash<std::string_view>()({static_cast<const char*>(memory), size});
}

class Clock {
 public:
  std::mutex mutex;
  DeviceCounts counts;
  int refusing = 0;

  void Add(Queued copy) { queued_.push_back(std::move(copy)); }
  /// Ends the copies that `ends` says, in their order.
  template <typename Predicate>
  void End(const Predicate& ends) {
    for (auto copy = queued_.begin(); copy != queued_.end();) {
      if (!ends(*copy)) {
        ++copy;
        continue;
      }
      if (!copy->arriving.empty()) {
        std::memcpy(copy->pinned, copy->arriving.data(), copy->size);
      } else if (HashOf(copy->pinned, copy->size) != copy->hash) {
        counts.violations.push_back("the host changed " + std::to_string(copy->size) +
                                    " bytes of pinned memory while a copy out of them was queued");
      }
      copy = queued_.erase(copy);
    }
  }
  void EndThoseOf(const void* pinned, size_t size) {
    End([&](const Queued& copy) { return copy.Overlaps(pinned, size); });
  }

 private:
  std::list<Queued> queued_;
};

/// What a GPU cannot record, or would repeat with what the host had then.
void RefuseToRecord(const std::string& what) {
  TORCH_CHECK(!IsRecording(), "not permitted while work is recorded: ", what);
}

Clock& TheClock() {
  static auto* const clock = new Clock;
  return *clock;
}

}  // namespace

void CountKernel() {
  NoteKernel();
  if (IsRepeating()) return;
  const std::lock_guard lock(TheClock().mutex);
  ++TheClock().counts.kernels;
}

void CountGraph() {
  const std::lock_guard lock(TheClock().mutex);
  ++TheClock().counts.graphs;
}

void NoteViolation(const std::string& what) {
  const std::lock_guard lock(TheClock().mutex);
  TheClock().counts.violations.push_back(what);
}

void CountDeviceBytes(int64_t more) {
  const std::lock_guard lock(TheClock().mutex);
  DeviceCounts& counts = TheClock().counts;
  counts.bytes += more;
  counts.peak_bytes = std::max(counts.peak_bytes, counts.bytes);
}

void Wait(const std::string& cause) {
  RefuseToRecord(cause);
  FinishSideStreams();
  Clock& clock = TheClock();
  const std::lock_guard lock(clock.mutex);
  ++clock.counts.waits[cause];
  clock.End([](const Queued&) { return true; });
  TORCH_CHECK(clock.refusing == 0, "the host waits for the device: ", cause);
}

namespace {

/// What a side stream does when it comes to it; pinned memory that was freed by then holds what it held.
struct SideCopy {
  void* pinned;
  void* kernel_memory;
  size_t size;
  bool to_pinned;
  std::vector<char> kept = {};
  bool freed = false;

  void Run() const;
};

/// Of this thread.
std::list<std::weak_ptr<SideCopy>>& SideCopies() {
  static thread_local std::list<std::weak_ptr<SideCopy>> copies;
  return copies;
}

void QueueSideCopy(void* pinned, void* kernel_memory, size_t size, bool to_pinned) {
  const auto copy = std::make_shared<SideCopy>(SideCopy{pinned, kernel_memory, size, to_pinned});
  SideCopies().remove_if([](const auto& old) { return old.expired(); });
  SideCopies().push_back(copy);
  QueueOnSideStream(kernel_memory, size, [copy] { copy->Run(); });
}

void ToPinnedNow(void* pinned, const void* kernel_memory, size_t size);
void FromPinnedNow(void* kernel_memory, const void* pinned, size_t size);

void SideCopy::Run() const {
  if (freed) {
    if (!to_pinned) std::memcpy(kernel_memory, kept.data(), size);
  } else if (to_pinned) {
    ToPinnedNow(pinned, kernel_memory, size);
  } else {
    FromPinnedNow(kernel_memory, pinned, size);
  }
}

void BeginCopy(const std::string& what) {
  RefuseToRecord(what);
  const std::lock_guard lock(TheClock().mutex);
  ++TheClock().counts.copies;
}

}  // namespace

void CopyToPinned(void* pinned, const void* kernel_memory, size_t size) {
  BeginCopy("a copy to the host");
  if (IsOnSideStream()) return QueueSideCopy(pinned, const_cast<void*>(kernel_memory), size, true);
  ToPinnedNow(pinned, kernel_memory, size);
}

void CopyFromPinned(void* kernel_memory, const void* pinned, size_t size) {
  BeginCopy("a copy from the host");
  if (IsOnSideStream()) return QueueSideCopy(const_cast<void*>(pinned), kernel_memory, size, false);
  FromPinnedNow(kernel_memory, pinned, size);
}

namespace {

void ToPinnedNow(void* pinned, const void* kernel_memory, size_t size) {
  const std::lock_guard lock(TheClock().mutex);
  TheClock().EndThoseOf(pinned, size);
  const auto* bytes = static_cast<const char*>(kernel_memory);
  Queued copy{.pinned = static_cast<char*>(pinned), .size = size, .arriving = {bytes, bytes + size}};
  std::memset(pinned, kNotArrived, size);
  TheClock().Add(std::move(copy));
}

void FromPinnedNow(void* kernel_memory, const void* pinned, size_t size) {
  const std::lock_guard lock(TheClock().mutex);
  TheClock().EndThoseOf(pinned, size);
  std::memcpy(kernel_memory, pinned, size);
  TheClock().Add({.pinned = static_cast<char*>(const_cast<void*>(pinned)),
                  .size = size,
                  .arriving = {},
                  .hash = HashOf(pinned, size)});
}

}  // namespace

void ForgetPinned(const void* pinned, size_t size) {
  const auto* begin = static_cast<const char*>(pinned);
  for (const std::weak_ptr<SideCopy>& weak : SideCopies()) {
    const std::shared_ptr<SideCopy> copy = weak.lock();
    if (copy == nullptr || copy->freed) continue;
    const auto* from = static_cast<const char*>(copy->pinned);
    if (from < begin || from >= begin + size) continue;
    copy->kept.assign(from, from + copy->size);
    copy->freed = true;
  }
  const std::lock_guard lock(TheClock().mutex);
  TheClock().EndThoseOf(pinned, size);
}

DeviceCounts CountsOfDevice() {
  const std::lock_guard lock(TheClock().mutex);
  return TheClock().counts;
}

void ResetDeviceCounts() {
  const std::lock_guard lock(TheClock().mutex);
  DeviceCounts& counts = TheClock().counts;
  counts = {.bytes = counts.bytes, .peak_bytes = counts.bytes};
}

WaitsRefused::WaitsRefused() {
  const std::lock_guard lock(TheClock().mutex);
  ++TheClock().refusing;
}
WaitsRefused::~WaitsRefused() {
  const std::lock_guard lock(TheClock().mutex);
  --TheClock().refusing;
}

}  // namespace trainwright::test
