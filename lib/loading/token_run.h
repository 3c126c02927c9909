/// Token ids in memory, as narrow as the vocabulary lets them be: 2 bytes where all fit into 16 bits, else 4.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace trainwright {

/// Appends ids one run after the other. Not thread-safe.
class TokenRun {
 public:
  TokenRun() = default;
  /// \param vocab_size all ids lie below it
  explicit TokenRun(uint32_t vocab_size) : narrow_(vocab_size <= 1u << 16) {}
  bool narrow() const { return narrow_; }
  size_t size() const { return narrow_ ? ids_16_.size() : ids_32_.size(); }
  size_t capacity_bytes() const { return ids_16_.capacity() * 2 + ids_32_.capacity() * 4; }
  void reserve(size_t tokens) { narrow_ ? ids_16_.reserve(tokens) : ids_32_.reserve(tokens); }
  /// Makes it empty and keeps the memory.
  void clear() {
    ids_16_.clear();
    ids_32_.clear();
  }
  void Append(std::span<const uint32_t> ids) {
    if (narrow_) {
      AppendNarrowed(ids);
    } else {
      ids_32_.insert(ids_32_.end(), ids.begin(), ids.end());
    }
  }
  /// Of whichever width they are; the other one is empty.
  std::span<const uint16_t> ids_16() const { return ids_16_; }
  std::span<const uint32_t> ids_32() const { return ids_32_; }
  /// Ids [begin, begin + count) with 4 bytes each.
  std::vector<uint32_t> Widened(size_t begin, size_t count) const;

 private:
  void AppendNarrowed(std::span<const uint32_t> ids);

  bool narrow_ = false;
  std::vector<uint16_t> ids_16_;
  std::vector<uint32_t> ids_32_;
};

}  // namespace trainwright
