/// A set of integers in [0, size) that answers "the smallest member >= x" in a handful of word operations.
///
/// A tree of 64-bit words, 64 children a word: three levels reach 262,144, four reach 16.7 million.
/// Not thread-safe.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainwright {

class OrderedBitSet {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  /// \param size members are below it, >= 1
  explicit OrderedBitSet(size_t size) {
    do {
      size = (size + 63) / 64;
      levels_.emplace_back(size, 0);
    } while (size > 1);
  }

  void Insert(size_t value) {
    for (std::vector<uint64_t>& level : levels_) {
      const uint64_t before = level[value / 64];
      level[value / 64] = before | uint64_t{1} << (value % 64);
      if (before != 0) return;  // the levels above know of this word already
      value /= 64;
    }
  }

  void Erase(size_t value) {
    for (std::vector<uint64_t>& level : levels_) {
      if ((level[value / 64] &= ~(uint64_t{1} << (value % 64))) != 0) return;
      value /= 64;
    }
  }

  /// \returns the smallest member >= `value`, or kNone
  size_t NextAtLeast(size_t value) const {
    size_t height = 0;
    for (; height < levels_.size(); ++height) {
      const size_t word = value / 64;
      if (word >= levels_[height].size()) return kNone;
      const uint64_t rest = levels_[height][word] >> (value % 64);
      if (rest != 0) {
        value += static_cast<size_t>(std::countr_zero(rest));
        break;
      }
      value = word + 1;
    }
    if (height == levels_.size()) return kNone;
    while (height-- > 0) value = value * 64 + static_cast<size_t>(std::countr_zero(levels_[height][value]));
    return value;
  }

 private:
  std::vector<std::vector<uint64_t>> levels_;  // members first, then one bit for each non-empty word below
};

}  // namespace trainwright
