// Which elements are whose, beside a table that is written down element by element.
#include "lib/spec/shard_layout.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace trainwright {
namespace {

using Piece = ShardLayout::Piece;

constexpr int64_t kSizes[] = {0,
                              1,
                              kReductionBlock - 16,
                              kReductionBlock,
                              kReductionBlock + 48,
                              3 * kReductionBlock,
                              7 * kReductionBlock + 160};

TEST(ShardLayout, GivesEachElementToOneRankInTurnsOfABlock) {
  for (const int64_t elements : kSizes) {
    for (const int64_t ranks : {1, 2, 3, 8}) {
      std::vector<int64_t> next(static_cast<size_t>(ranks), 0);
      const ShardLayout layout(elements, 0, ranks);
      for (int64_t element = 0; element < elements; ++element) {
        const int64_t owner = element / kReductionBlock % ranks;
        ASSERT_EQ(layout.OwnerOf(element), owner);
        ASSERT_EQ(layout.PlaceOf(element), next[static_cast<size_t>(owner)]++) << element;
      }
      for (int64_t rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(layout.SizeOf(rank), next[static_cast<size_t>(rank)]) << elements << ", " << rank;
        EXPECT_LE(layout.SizeOf(rank), layout.SizeOf(0)) << "the first rank has most";
      }
    }
  }
}

TEST(ShardLayout, PiecesOfARangeAreThoseOfItsElementsThatAreTheRanks) {
  constexpr int64_t kElements = 7 * kReductionBlock + 160;
  const int64_t borders[] = {0,        16, kReductionBlock, 2 * kReductionBlock + 32, 6 * kReductionBlock,
                             kElements};
  for (const int64_t begin : borders) {
    for (const int64_t end : borders) {
      int64_t covered = 0;
      for (int64_t rank = 0; rank < 3; ++rank) {
        const ShardLayout layout(kElements, rank, 3);
        int64_t before = begin;
        layout.ForEachPiece(begin, end, [&](const Piece& piece) {
          EXPECT_GE(piece.begin, before);
          EXPECT_GT(piece.size, 0);
          EXPECT_LE(piece.begin + piece.size, end);
          EXPECT_EQ(layout.OwnerOf(piece.begin), rank);
          EXPECT_EQ(piece.begin / kReductionBlock, (piece.begin + piece.size - 1) / kReductionBlock);
          EXPECT_EQ(piece.place, layout.PlaceOf(piece.begin));
          before = piece.begin + piece.size;
          covered += piece.size;
        });
      }
      EXPECT_EQ(covered, end > begin ? end - begin : 0);
    }
  }
}

TEST(ShardLayout, APieceOfEachBlockIsTheWholeShard) {
  const ShardLayout layout(5 * kReductionBlock + 160, 1, 2);
  std::vector<Piece> pieces;
  layout.ForEachPiece([&](const Piece& piece) { pieces.push_back(piece); });
  const std::vector<Piece> expected = {{kReductionBlock, 0, kReductionBlock},
                                       {3 * kReductionBlock, kReductionBlock, kReductionBlock},
                                       {5 * kReductionBlock, 2 * kReductionBlock, 160}};
  EXPECT_EQ(pieces, expected);
  EXPECT_EQ(layout.size(), 2 * kReductionBlock + 160);
  EXPECT_EQ(layout.BlocksOf(1), 3);
}

}  // namespace
}  // namespace trainwright
