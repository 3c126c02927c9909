#include "tests/support/refusing_device/device_memory.h"

#include <c10/util/Exception.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>

#include "tests/support/refusing_device/device_clock.h"
#include "tests/support/refusing_device/refusing_device.h"
#include "tests/support/refusing_device/side_streams.h"

namespace trainwright::test {
namespace {

/// As much as a GPU's allocator aligns to.
constexpr size_t kAlignment = 512;
constexpr size_t kPage = 4096;
constexpr size_t kArenaBytes = size_t{32} << 30;  // of addresses; pages are taken when they are touched
constexpr int kNanByte = 0xFF;                    // each of a floating-point number's: NaN

size_t RoundUp(size_t size, size_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

/// Two ranges of addresses: of tensors, which nobody may touch, and as far behind them of kernels.
class Arena {
 public:
  Arena() {
    void* both =
        mmap(nullptr, 2 * kArenaBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TORCH_CHECK(both != MAP_FAILED, "no addresses for the refusing device");
    begin_ = static_cast<char*>(both);
    ReportHostAccess();
  }

  void* Allocate(size_t size) {
    const std::lock_guard lock(mutex_);
    const size_t pages = RoundUp(std::max(size, kAlignment), kPage);
    auto block = free_.lower_bound(pages);
    if (block != free_.end() && block->first > 2 * pages) block = free_.end();
    const bool is_fresh = block == free_.end();
    const size_t capacity = is_fresh ? pages : block->first, offset = is_fresh ? Fresh(pages) : block->second;
    if (!is_fresh) free_.erase(block);
    // As far behind as alignment lets it: what runs over its end meets the page that follows.
    const size_t at = offset + capacity - RoundUp(std::max(size, kAlignment), kAlignment);
    std::memset(begin_ + kArenaBytes + at, kNanByte, size);
    used_.emplace(at, Used{offset, capacity, size, ++number_});
    NoteAllocation(begin_ + kArenaBytes + at);
    CountDeviceBytes(static_cast<int64_t>(size));
    return begin_ + at;
  }

  void Free(void* address) {
    NoteFree(KernelAddress(address), SizeOf(address));
    const std::lock_guard lock(mutex_);
    const auto found = used_.find(static_cast<size_t>(static_cast<char*>(address) - begin_));
    CountDeviceBytes(-static_cast<int64_t>(found->second.size));
    std::memset(begin_ + kArenaBytes + found->first, kNanByte, found->second.size);
    free_.emplace(found->second.capacity, found->second.offset);
    used_.erase(found);
  }

  size_t SizeOf(void* address) {
    const std::lock_guard lock(mutex_);
    return used_.at(static_cast<size_t>(static_cast<char*>(address) - begin_)).size;
  }

  DeviceMemoryContents Contents() {
    const std::lock_guard lock(mutex_);
    DeviceMemoryContents contents;
    for (const auto& [at, block] : used_) {
      const char* bytes = begin_ + kArenaBytes + at;
      contents.blocks.push_back({at, block.number, {bytes, bytes + block.size}});
    }
    return contents;
  }
  void PutBack(const DeviceMemoryContents& contents) {
    const std::lock_guard lock(mutex_);
    for (const auto& [at, number, bytes] : contents.blocks) {
      const auto found = used_.find(at);
      if (found == used_.end() || found->second.number != number) continue;
      std::memcpy(begin_ + kArenaBytes + at, bytes.data(), bytes.size());
    }
  }

  bool Has(const void* address) const { return address >= begin_ && address < begin_ + kArenaBytes; }
  void* KernelAddress(const void* address) const {
    return const_cast<char*>(static_cast<const char*>(address)) + kArenaBytes;
  }
  /// For the signal handler: does what a dying process can.
  void Describe(const void* address, char* text, size_t size) const {
    const auto at = static_cast<size_t>(static_cast<const char*>(address) - begin_);
    auto block = used_.upper_bound(at);
    if (block == used_.begin() || at >= (block = std::prev(block))->first + block->second.size) {
      std::snprintf(text, size, "an address that no tensor has");
      return;
    }
    std::snprintf(text, size, "byte %zu of allocation %lld, which has %zu bytes", at - block->first,
                  static_cast<long long>(block->second.number), block->second.size);
  }

 private:
  struct Used {
    size_t offset, capacity, size;
    int64_t number;
  };

  size_t Fresh(size_t pages) {
    const size_t offset = top_;
    TORCH_CHECK_WITH(OutOfMemoryError, pages + kPage <= kArenaBytes - top_, "the refusing device is full");
    top_ += pages + kPage;
    TORCH_CHECK(mprotect(begin_ + kArenaBytes + offset, pages, PROT_READ | PROT_WRITE) == 0);
    return offset;
  }
  static void ReportHostAccess();

  char* begin_ = nullptr;
  std::mutex mutex_;
  size_t top_ = 0;
  int64_t number_ = 0;
  std::multimap<size_t, size_t> free_;  // capacity to offset
  std::map<size_t, Used> used_;         // by the offset of the first byte
};

Arena& TheArena() {
  static auto* const arena = new Arena;  // tensors of other statics outlive it otherwise
  return *arena;
}

void OnFault(int, siginfo_t* info, void*) {
  if (TheArena().Has(info->si_addr)) {
    char what[160], line[256];
    TheArena().Describe(info->si_addr, what, sizeof(what));
    const int length =
        std::snprintf(line, sizeof(line), "refusing device: the host touched device memory: %s\n", what);
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, static_cast<size_t>(length));
  }
  signal(SIGSEGV, SIG_DFL);  // the access comes again, at its line, and ends the process
}

void Arena::ReportHostAccess() {
  struct sigaction action {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
}

class Allocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    void* const address = size == 0 ? nullptr : TheArena().Allocate(size);
    return {address, address, &Free, kRefusingDevice};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, size_t size) const override {
    std::memcpy(test::KernelAddress(to), test::KernelAddress(from), size);
  }

 private:
  static void Free(void* address) {
    if (address != nullptr) TheArena().Free(address);
  }
};

}  // namespace

c10::Allocator* DeviceAllocator() {
  static auto* const allocator = new Allocator;
  return allocator;
}

void* KernelAddress(const void* device_address) {
  if (device_address == nullptr) return nullptr;
  TORCH_CHECK(IsDeviceAddress(device_address), "not an address of the refusing device");
  return TheArena().KernelAddress(device_address);
}

DeviceMemoryContents DeviceMemoryContents::Now() {
  return TheArena().Contents();
}

void DeviceMemoryContents::PutBack() const {
  TheArena().PutBack(*this);
}

bool IsDeviceAddress(const void* address) {
  return TheArena().Has(address);
}

namespace {
const c10::AllocatorRegisterer<c10::DeviceType::PrivateUse1> kRegistered(DeviceAllocator());
}  // namespace

}  // namespace trainwright::test
