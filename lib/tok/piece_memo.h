/// Remembers the ids of pieces of text, within a budget of memory: what is encoded once need not be merged
/// again. Forgets everything when it is full. Not thread-safe: one for each thread.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace trainwright {

class PieceMemo {
 public:
  /// \param budget_bytes at least 1 MiB; tables stay below it, but for the moment in which one grows
  explicit PieceMemo(size_t budget_bytes);

  /// Pieces longer than this are never remembered.
  static constexpr size_t kMaxPieceBytes = 512;

  /// What a piece is looked up by. Holds no text: pieces of up to 15 bytes are their own key, longer ones are
  /// compared in full when looked up.
  struct Key {
    uint64_t low = 0, high = 0, hash = 0;
  };
  static Key KeyOf(std::string_view piece);
  /// The same, faster, for a piece after whose first byte kReach bytes can be read.
  static Key KeyOfReadable(std::string_view piece) {
    if (piece.size() > kShortBytes) return KeyOf(piece);
    uint64_t words[2], kept[2];
    std::memcpy(words, piece.data(), sizeof(words));
    std::memcpy(kept, kKeep + kShortBytes + 1 - piece.size(), sizeof(kept));
    Key key;
    key.low = words[0] & kept[0];
    key.high = words[1] & kept[1];
    key.high |= uint64_t{piece.size()} << 56;
    key.hash = HashOf(key.low, key.high);
    return key;
  }
  static constexpr size_t kReach = 16;

  /// Has the memory fetched that Find looks at first.
  void Prefetch(const Key& key) const { __builtin_prefetch(&slots_[key.hash >> shift_]); }

  /// Writes the ids of a piece of up to 15 bytes that has up to kInline of them, and then anything: kWritten
  /// in all.
  /// \returns how many there are; 0 when Find must say
  size_t FindShort(const Key& key, uint32_t* ids) const {
    const size_t mask = slots_.size() - 1;
    size_t at = key.hash >> shift_;
    for (int probes = 0; probes < 4; ++probes) {
      const Slot& slot = slots_[at];
      if (slot.low == key.low && slot.high == key.high) {
        if (slot.count() > kInline || key.high >= kLongMark) return 0;
        std::memcpy(ids, slot.ids.data(), sizeof(slot.ids));
        return slot.count();
      }
      at = (at + 1) & mask;
    }
    return 0;
  }
  static constexpr uint32_t kWritten = 4;
  static constexpr uint32_t kInline = 3;

  /// The ids of a piece; a null span when it is not remembered. Valid until the next Remember.
  std::span<const uint32_t> Find(const Key& key, std::string_view piece) const;
  /// `piece` is not remembered yet.
  void Remember(const Key& key, std::string_view piece, std::span<const uint32_t> ids);

  /// What its tables take, room for growth included.
  size_t memory_bytes() const;

 private:
  static constexpr size_t kShortBytes = 15;
  // Sixteen bytes of this, from kShortBytes + 1 - n on, keep the first n bytes of a key.
  static constexpr uint8_t kKeep[2 * (kShortBytes + 1)] = {255, 255, 255, 255, 255, 255, 255, 255,
                                                           255, 255, 255, 255, 255, 255, 255, 255};
  static constexpr uint64_t kLongMark = uint64_t{0xFF} << 56;
  static uint64_t HashOf(uint64_t low, uint64_t high) {
    const auto product =
        static_cast<unsigned __int128>(low ^ 0x9E3779B97F4A7C15u) * (high ^ 0xD6E8FEB86659FD93u);
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  struct alignas(32) Slot {
    uint64_t low = 0, high = 0;               // high is 0 in an empty slot
    std::array<uint32_t, kInline + 1> ids{};  // more than kInline: ids[0] is their place in ids_
    uint32_t count() const { return ids[kInline]; }
  };
  /// Memory in large pages where the system has them: lookups go everywhere in it.
  class Slots {
   public:
    explicit Slots(size_t count);
    Slot& operator[](size_t at) { return slots_.get()[at]; }
    const Slot& operator[](size_t at) const { return slots_.get()[at]; }
    size_t size() const { return count_; }
    void Clear();

   private:
    struct Free {
      void operator()(Slot* slots) const { std::free(slots); }
    };
    size_t count_;
    std::unique_ptr<Slot[], Free> slots_;
  };
  void Grow();
  void Forget();

  size_t max_slots_, max_arena_bytes_;
  Slots slots_;
  int shift_ = 0;
  size_t used_ = 0;
  std::vector<uint32_t> ids_;  // of long pieces first their text's place in text_
  std::vector<char> text_;
};

}  // namespace trainwright
