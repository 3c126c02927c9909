#include "tests/support/refusing_device/pinned_memory.h"

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>

#include "tests/support/refusing_device/device_clock.h"

namespace trainwright::test {
namespace {

struct Blocks {
  std::mutex mutex;
  std::map<const char*, size_t> size_of;
};
Blocks& TheBlocks() {
  static auto* const blocks = new Blocks;
  return *blocks;
}

class Allocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    void* const address = size == 0 ? nullptr : std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    if (address != nullptr) {
      const std::lock_guard lock(TheBlocks().mutex);
      TheBlocks().size_of[static_cast<const char*>(address)] = size;
    }
    return {address, address, &Free, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, size_t size) const override { std::memcpy(to, from, size); }

 private:
  static void Free(void* address) {
    if (address == nullptr) return;
    {
      const std::lock_guard lock(TheBlocks().mutex);
      const auto found = TheBlocks().size_of.find(static_cast<const char*>(address));
      ForgetPinned(address, found->second);
      TheBlocks().size_of.erase(found);
    }
    std::free(address);
  }
};

}  // namespace

c10::Allocator* PinnedAllocator() {
  static auto* const allocator = new Allocator;
  return allocator;
}

bool IsPinned(const void* address) {
  const std::lock_guard lock(TheBlocks().mutex);
  auto block = TheBlocks().size_of.upper_bound(static_cast<const char*>(address));
  if (block == TheBlocks().size_of.begin()) return false;
  block = std::prev(block);
  return static_cast<const char*>(address) < block->first + block->second;
}

}  // namespace trainwright::test
