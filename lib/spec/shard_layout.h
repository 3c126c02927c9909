/// Which elements of the flat buffers belong to which rank of a run that is sharded.
///
/// Blocks of kReductionBlock elements belong to the ranks round-robin: block b to rank b modulo their number.
/// A rank's blocks one after the other are its shard. The first rank has most. Immutable; torch-free.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/base/error.h"
#include "lib/spec/reduction_block.h"

namespace trainwright {

class ShardLayout {
 public:
  /// \param elements of the flat buffers, at least 0
  /// \param rank from 0 to ranks - 1
  ShardLayout(int64_t elements, int64_t rank, int64_t ranks)
      : elements_(elements), rank_(rank), ranks_(ranks) {
    TRAINWRIGHT_CHECK(elements >= 0 && rank >= 0 && rank < ranks);
  }
  int64_t elements() const { return elements_; }
  int64_t rank() const { return rank_; }
  int64_t ranks() const { return ranks_; }
  int64_t OwnerOf(int64_t element) const { return element / kReductionBlock % ranks_; }
  /// Elements of a rank's shard.
  int64_t SizeOf(int64_t rank) const {
    const int64_t whole = elements_ / kReductionBlock;
    const int64_t own = (whole - rank + ranks_ - 1) / ranks_ * kReductionBlock;
    return own + (whole % ranks_ == rank ? elements_ % kReductionBlock : 0);
  }
  int64_t size() const { return SizeOf(rank_); }
  /// Blocks of a shard, one that is cut short by the end of the buffers counted.
  int64_t BlocksOf(int64_t rank) const { return (SizeOf(rank) + kReductionBlock - 1) / kReductionBlock; }
  /// Of the rank that has most.
  int64_t most_blocks() const { return BlocksOf(0); }
  /// Where an element lies in its owner's shard.
  int64_t PlaceOf(int64_t element) const {
    return element / kReductionBlock / ranks_ * kReductionBlock + element % kReductionBlock;
  }

  /// Elements that lie side by side in the flat buffers, in one block.
  struct Piece {
    int64_t begin = 0;  ///< in the flat buffers
    int64_t place = 0;  ///< in the owner's shard
    int64_t size = 0;
    bool operator==(const Piece&) const = default;
  };
  /// Calls `visit` with the parts of [begin, end) that are a rank's, in their order; none of them is empty.
  template <typename Visit>
  void ForEachPieceOf(int64_t rank, int64_t begin, int64_t end, const Visit& visit) const {
    TRAINWRIGHT_CHECK(begin >= 0 && end <= elements_);
    int64_t block = begin / kReductionBlock;
    block += (rank - block % ranks_ + ranks_) % ranks_;
    for (; std::max(begin, block * kReductionBlock) < end; block += ranks_) {
      const int64_t from = std::max(begin, block * kReductionBlock);
      const int64_t size = std::min(end, (block + 1) * kReductionBlock) - from;
      visit(Piece{.begin = from, .place = PlaceOf(from), .size = size});
    }
  }
  /// Those of this rank.
  template <typename Visit>
  void ForEachPiece(int64_t begin, int64_t end, const Visit& visit) const {
    ForEachPieceOf(rank_, begin, end, visit);
  }
  template <typename Visit>
  void ForEachPiece(const Visit& visit) const {
    ForEachPieceOf(rank_, 0, elements_, visit);
  }
  bool operator==(const ShardLayout&) const = default;

 private:
  int64_t elements_, rank_, ranks_;
};

}  // namespace trainwright
