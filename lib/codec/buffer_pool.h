/// Buffers that go round between threads, so that a block's memory is not mapped again each time.
/// Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace trainwright::codec {

class BufferPool {
 public:
  /// A buffer of at least `size` bytes, of any content.
  std::vector<uint8_t> Take(size_t size) {
    std::vector<uint8_t> buffer;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        buffer = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (buffer.size() < size) buffer.resize(size);
    return buffer;
  }
  void Give(std::vector<uint8_t> buffer) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(buffer));
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<uint8_t>> free_;
};

}  // namespace trainwright::codec
