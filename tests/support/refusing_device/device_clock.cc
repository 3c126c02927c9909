#include "tests/support/refusing_device/device_clock.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <list>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/refusing_device/recorded_work.h"
#include "tests/support/refusing_device/refusing_device.h"

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

  void Add(Queued copy) {
    ++counts.copies;
    queued_.push_back(std::move(copy));
  }
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
  if (IsRepeating()) return;
  const std::lock_guard lock(TheClock().mutex);
  ++TheClock().counts.kernels;
}

void CountGraph() {
  const std::lock_guard lock(TheClock().mutex);
  ++TheClock().counts.graphs;
}

void CountDeviceBytes(int64_t more) {
  const std::lock_guard lock(TheClock().mutex);
  DeviceCounts& counts = TheClock().counts;
  counts.bytes += more;
  counts.peak_bytes = std::max(counts.peak_bytes, counts.bytes);
}

void Wait(const std::string& cause) {
  RefuseToRecord(cause);
  Clock& clock = TheClock();
  const std::lock_guard lock(clock.mutex);
  ++clock.counts.waits[cause];
  clock.End([](const Queued&) { return true; });
  TORCH_CHECK(clock.refusing == 0, "the host waits for the device: ", cause);
}

void CopyToPinned(void* pinned, const void* kernel_memory, size_t size) {
  RefuseToRecord("a copy to the host");
  const std::lock_guard lock(TheClock().mutex);
  TheClock().EndThoseOf(pinned, size);
  const auto* bytes = static_cast<const char*>(kernel_memory);
  Queued copy{.pinned = static_cast<char*>(pinned), .size = size, .arriving = {bytes, bytes + size}};
  std::memset(pinned, kNotArrived, size);
  TheClock().Add(std::move(copy));
}

void CopyFromPinned(void* kernel_memory, const void* pinned, size_t size) {
  RefuseToRecord("a copy from the host");
  const std::lock_guard lock(TheClock().mutex);
  TheClock().EndThoseOf(pinned, size);
  std::memcpy(kernel_memory, pinned, size);
  TheClock().Add({.pinned = static_cast<char*>(const_cast<void*>(pinned)),
                  .size = size,
                  .arriving = {},
                  .hash = HashOf(pinned, size)});
}

void ForgetPinned(const void* pinned, size_t size) {
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
