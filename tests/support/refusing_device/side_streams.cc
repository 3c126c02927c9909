#include "tests/support/refusing_device/side_streams.h"

#include <list>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "tests/support/refusing_device/device_clock.h"

namespace trainwright::test {
namespace {

struct Copy {
  int64_t stream;
  uint64_t number;
  char* memory;
  size_t size;
  std::function<void()> run;
};

struct Streams {
  int64_t present = 0, made = 0;
  uint64_t kernels = 0;
  std::map<int64_t, uint64_t> copies;  // queued on each stream
  std::map<int64_t, uint64_t> behind;  // kernels that each stream has waited for
  std::list<Copy> queued;
};
Streams& Own() {
  static thread_local Streams streams;
  return streams;
}

/// Of the memory of side streams, and of what other streams use.
struct Uses {
  std::mutex mutex;
  std::map<const void*, int64_t> allocated_on;
  std::map<const void*, std::set<int64_t>> used_on;
};
Uses& AllUses() {
  static auto* const uses = new Uses;
  return *uses;
}

/// Runs the copies that `ends` says, in their order.
template <typename Predicate>
void Run(const Predicate& ends) {
  std::list<Copy>& queued = Own().queued;
  for (auto copy = queued.begin(); copy != queued.end();) {
    if (!ends(*copy)) {
      ++copy;
      continue;
    }
    const std::function<void()> run = std::move(copy->run);
    copy = queued.erase(copy);
    run();
  }
}

}  // namespace

int64_t PresentStream() {
  return Own().present;
}
int64_t ExchangeStream(int64_t stream) {
  return std::exchange(Own().present, stream);
}
int64_t NewStream() {
  return ++Own().made;
}

void QueueOnSideStream(void* kernel_memory, size_t size, std::function<void()> copy) {
  Streams& own = Own();
  bool of_the_stream = false;
  {
    const std::lock_guard lock(AllUses().mutex);
    const auto& allocated = AllUses().allocated_on;
    auto block = allocated.upper_bound(kernel_memory);
    of_the_stream = block != allocated.begin() && (--block)->second == own.present;
  }
  if (!of_the_stream && own.behind[own.present] < own.kernels) {
    NoteViolation("a copy on a side stream does not wait for the kernels that were queued before it");
  }
  own.queued.push_back(
      {own.present, ++own.copies[own.present], static_cast<char*>(kernel_memory), size, std::move(copy)});
}

StreamEvent RecordOn(int64_t stream) {
  return {.stream = stream, .copies = Own().copies[stream], .kernels = Own().kernels};
}

void BlockOn(const StreamEvent& event, int64_t stream) {
  if (event.stream == 0) Own().behind[stream] = event.kernels;
  if (stream != 0) return;
  Run([&](const Copy& copy) { return copy.stream == event.stream && copy.number <= event.copies; });
}

void FinishSideStreams() {
  Run([](const Copy&) { return true; });
}

void NoteKernel() {
  ++Own().kernels;
}

void NoteAllocation(const void* kernel_memory) {
  const std::lock_guard lock(AllUses().mutex);
  AllUses().allocated_on[kernel_memory] = Own().present;
}

void NoteUse(const void* kernel_memory, int64_t stream) {
  const std::lock_guard lock(AllUses().mutex);
  const auto& allocated = AllUses().allocated_on;
  auto block = allocated.upper_bound(kernel_memory);
  if (block != allocated.begin()) AllUses().used_on[(--block)->first].insert(stream);
}

void NoteFree(const void* kernel_memory, size_t size) {
  int64_t allocated_on = 0;
  std::set<int64_t> used_on;
  {
    const std::lock_guard lock(AllUses().mutex);
    Uses& uses = AllUses();
    if (const auto block = uses.allocated_on.extract(kernel_memory)) allocated_on = block.mapped();
    if (auto uses_of = uses.used_on.extract(kernel_memory)) used_on = std::move(uses_of.mapped());
  }
  if (allocated_on != 0 && !used_on.contains(0)) {
    NoteViolation("memory of a side stream was freed that nobody recorded on the stream that computes");
  }
  const auto* begin = static_cast<const char*>(kernel_memory);
  const auto touches = [&](const Copy& copy) {
    return copy.memory < begin + size && begin < copy.memory + copy.size;
  };
  for (const Copy& copy : Own().queued) {
    if (touches(copy) && copy.stream != allocated_on && !used_on.contains(copy.stream)) {
      NoteViolation("memory was freed while a copy on a stream was queued that it was not recorded on");
    }
  }
  Run(touches);
}

}  // namespace trainwright::test
