/// Byte-pair encoding of one piece of text: its bytes, merged pair by pair in the order of the merges' ranks.
///
/// Immutable after construction and thread-safe. Any number of bytes is merged in O(n log n).
/// \source Sennrich et al. 2016, section 3.2; ties are broken leftmost, as Hugging Face tokenizers does
#pragma once

#include <array>
#include <cstdint>
#include <span>
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
  BytePairMerges(const std::array<uint32_t, 256>& byte_ids, std::span<const BytePairMerge> merges);

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
      uint32_t rank, position, merged;
    };
    std::vector<Candidate> heap;
  };

  /// The ids of `piece`, in scratch->ids. At most 2^31 bytes.
  void Encode(std::string_view piece, Scratch* scratch) const;

 private:
  struct Entry {
    uint64_t pair;
    uint32_t rank, merged;
  };
  /// nullptr when the two never merge.
  const Entry* Find(uint32_t left, uint32_t right) const {
    const uint64_t pair = uint64_t{left} << 32 | right;
    for (uint64_t slot = Hash(pair) >> shift_;; slot = (slot + 1) & mask_) {
      const Entry& entry = entries_[slot];
      if (entry.pair == pair) return &entry;
      if (entry.pair == kEmpty) return nullptr;
    }
  }
  static uint64_t Hash(uint64_t pair) { return (pair ^ pair >> 29) * 0x9E3779B97F4A7C15u; }
  void MergeShort(std::vector<uint32_t>* ids) const;
  void MergeLong(Scratch* scratch) const;

  static constexpr uint64_t kEmpty = ~uint64_t{0};
  std::array<uint32_t, 256> byte_ids_;
  bool merges_nothing_;
  std::vector<Entry> entries_;
  uint64_t mask_ = 0;
  int shift_ = 0;
};

}  // namespace trainwright
