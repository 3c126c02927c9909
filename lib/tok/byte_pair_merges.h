/// Byte-pair encoding of one piece of text: its bytes, merged pair by pair in the order of the merges' ranks.
///
/// Immutable after construction and thread-safe. Any number of bytes is merged in O(n log n).
/// \source Sennrich et al. 2016, section 3.2; ties are broken leftmost, as Hugging Face tokenizers does
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/formats/tokenizer_identity.h"

namespace trainwright {

struct BytePairMerge {
  uint32_t left = 0, right = 0;  ///< ids of the tokens that merge
  uint32_t merged = 0;           ///< id of what they make
};

class BytePairMerges {
 public:
  /// \param byte_ids the id that stands for each byte; kNoId when the vocabulary has none: the byte is
  /// dropped \param merges   in the order of their ranks; of two of the same pair the latter counts; ids <
  /// 2^24
  BytePairMerges(const std::array<uint32_t, 256>& byte_ids, std::vector<BytePairMerge> merges);

  /// What Encode works in; any content, kept from call to call to save allocations.
  struct Scratch {
    std::vector<uint32_t> ids;
    struct Symbol {
      uint32_t id;
      uint32_t previous, next;  // positions; kNone at the ends
      bool merged_away;
    };
    std::vector<Symbol> symbols;
    struct Candidate {
      uint32_t rank, position;
    };
    std::vector<Candidate> heap;
  };

  /// The ids of `piece`, in scratch->ids. At most 2^31 bytes.
  void Encode(std::string_view piece, Scratch* scratch) const;

 private:
  static constexpr uint32_t kNever = 0xFFFFFFFF;

  /// The rank of the merge of two tokens; kNever when the two never merge.
  uint32_t RankOf(uint32_t left, uint32_t right) const {
    const uint64_t hash = HashOf(left, right);
    for (uint64_t at = hash >> shift_;; at = (at + 1) & mask_) {
      const uint32_t slot = slots_[at];
      if (slot == kNever) return kNever;
      if (slot >> kRankBits != TagOf(hash)) continue;
      const BytePairMerge& merge = merges_[slot & kMaxRank];
      if (merge.left == left && merge.right == right) return slot & kMaxRank;
    }
  }
  static uint64_t HashOf(uint32_t left, uint32_t right) {
    const uint64_t pair = uint64_t{left} << 32 | right;
    return (pair ^ pair >> 29) * 0x9E3779B97F4A7C15u;
  }
  static uint32_t TagOf(uint64_t hash) { return static_cast<uint32_t>(hash) >> kRankBits; }
  void MergeShort(std::string_view piece, std::vector<uint32_t>* ids) const;
  void MergeLong(Scratch* scratch) const;

  static constexpr int kRankBits = 24;
  static constexpr uint32_t kMaxRank = (1 << kRankBits) - 1;
  std::array<uint32_t, 256> byte_ids_;
  std::vector<BytePairMerge> merges_;  // by rank
  // A hash table as small as can be, since most pairs that are asked for are not in it: the rank, and eight
  // bits of the hash above it.
  std::vector<uint32_t> slots_;
  uint64_t mask_ = 0;
  int shift_ = 0;
  std::vector<uint32_t> byte_ranks_;  // of first byte << 8 | second; empty when a byte has no id
};

}  // namespace trainwright
