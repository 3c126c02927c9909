/// Remembers the ids of pieces of text, within a budget of memory: what is encoded once need not be merged
/// again. Forgets everything when it is full. Not thread-safe: one for each thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace trainwright {

class PieceMemo {
 public:
  /// \param budget_bytes at least 1 MiB; tables stay below it
  explicit PieceMemo(size_t budget_bytes);

  /// Pieces longer than this are never remembered.
  static constexpr size_t kMaxPieceBytes = 512;

  /// What a piece is looked up by. Holds no text: pieces of up to 15 bytes are their own key, longer ones are
  /// compared in full when looked up.
  struct Key {
    uint64_t low = 0, high = 0, hash = 0;
  };
  static Key KeyOf(std::string_view piece);

  /// The ids of a piece; a null span when it is not remembered. Valid until the next Remember.
  std::span<const uint32_t> Find(const Key& key, std::string_view piece) const;
  /// `piece` is not remembered yet.
  void Remember(const Key& key, std::string_view piece, std::span<const uint32_t> ids);

  /// What its tables take, room for growth included.
  size_t memory_bytes() const;

 private:
  static constexpr size_t kShortBytes = 15;
  static constexpr uint32_t kInline = 3;
  struct alignas(32) Slot {
    uint64_t low = 0, high = 0;  // high is 0 in an empty slot
    uint32_t ids[kInline] = {};  // more than kInline: ids[0] is their place in ids_
    uint32_t count = 0;
  };
  void Grow();
  void Forget();

  size_t max_slots_, max_arena_bytes_;
  std::vector<Slot> slots_;
  int shift_ = 0;
  size_t used_ = 0;
  std::vector<uint32_t> ids_;  // of long pieces first their text's place in text_
  std::vector<char> text_;
};

}  // namespace trainwright
