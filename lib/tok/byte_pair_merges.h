/// Byte-pair encoding of one piece of text: its symbols (bytes, or characters), merged pair by pair in the
/// order of the merges' ranks.
///
/// Immutable after construction and thread-safe. Any number of symbols is merged in O(n log n), with some 40
/// bytes of memory for each of more than 48.
/// \throws Error{kInterrupted, kTerminated} from long merges, after a stop signal \source Sennrich et al.
///     2016, section 3.2; ties are broken leftmost, as Hugging Face tokenizers and SentencePiece do
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/formats/tokenizer_identity.h"

namespace trainwright {

struct BytePairMerge {
  uint32_t left = 0, right = 0;  ///< the symbols that merge
  uint32_t merged = 0;           ///< what they make
  uint32_t rank = 0;             ///< the lower goes first; of merges of one rank the leftmost
};

class BytePairMerges {
 public:
  static constexpr size_t kMaxMerges = (1 << 24) - 1;

  /// \param byte_ids the symbol that stands for each byte; kNoId when the vocabulary has none: the byte is
  ///     dropped
  /// \param merges fewer than kMaxMerges, of ranks below kMaxMerges; of two of the same pair the latter
  ///     counts
  BytePairMerges(const std::array<uint32_t, 256>& byte_ids, const std::vector<BytePairMerge>& merges);

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
      uint32_t rank, position, left, right;
    };
    std::vector<Candidate> heap;
  };

  /// The ids of `piece`, in scratch->ids. At most 2^31 bytes.
  void Encode(std::string_view piece, Scratch* scratch) const;
  /// Merges the symbols in scratch->ids. At most 2^31.
  void Merge(Scratch* scratch) const;

 private:
  static constexpr uint32_t kNever = 0xFFFFFFFF;
  static constexpr int kSymbolBits = 20, kRankBits = 24;
  static constexpr uint64_t kEmpty = ~uint64_t{0};

  /// The rank of the merge of two symbols; kNever when the two never merge.
  uint32_t RankOf(uint32_t left, uint32_t right) const {
    if (((left | right) >> kSymbolBits) != 0) return WideRankOf(left, right);
    const uint64_t pair = PairOf(left, right), hash = HashOf(pair);
    if ((known_[hash >> known_shift_ >> 6] >> (hash >> known_shift_ & 63) & 1) == 0) return kNever;
    for (uint64_t at = hash >> shift_;; at = (at + 1) & mask_) {
      const uint64_t slot = slots_[at];
      if (slot == kEmpty) return kNever;
      if (slot >> kRankBits == pair) return static_cast<uint32_t>(slot & kMaxMerges);
    }
  }
  static uint64_t PairOf(uint32_t left, uint32_t right) { return uint64_t{left} << kSymbolBits | right; }
  static uint64_t HashOf(uint64_t pair) { return (pair ^ pair >> 23) * 0x9E3779B97F4A7C15u; }
  uint32_t WideRankOf(uint32_t left, uint32_t right) const;
  uint32_t MergedBy(uint32_t rank, uint32_t left, uint32_t right) const {
    const uint32_t merged = merged_[rank];
    return merged == kNever ? tied_.at(uint64_t{left} << 32 | right) : merged;
  }
  void MergeShort(std::string_view piece, std::vector<uint32_t>* ids) const;
  void MergeLong(Scratch* scratch) const;

  std::array<uint32_t, 256> byte_ids_;
  // A hash table of left << 44 | right << 24 | rank, so that an answer takes one access to memory.
  std::vector<uint64_t> slots_;
  uint64_t mask_ = 0;
  int shift_ = 0;
  // Most pairs that are asked for never merge: a bit of this table, an eighth as large, says so of most of
  // them.
  std::vector<uint64_t> known_;
  int known_shift_ = 0;
  // Ranks, by left << 32 | right, of merges whose symbols do not fit there.
  std::unordered_map<uint64_t, uint32_t> wide_;
  std::vector<uint32_t> merged_;  // by rank; kNever when merges of one rank make several things:
  std::unordered_map<uint64_t, uint32_t> tied_;  // what they make, by left << 32 | right
  std::vector<uint32_t> byte_ranks_;             // of first byte << 8 | second; empty when a byte has no id
};

}  // namespace trainwright
