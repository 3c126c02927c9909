#include "lib/model/input_pieces.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/model/inputs.h"
#include "tests/model/small_models.h"

namespace trainwright {
namespace {

/// Documents of 5, 1 and 9 tokens.
ModelInput ThreeDocuments() {
  return test::RandomInput(test::SmallConfig(), {5, 1, 9});
}

TEST(InputPiecesTest, WithoutALengthItIsTheInputItself) {
  const ModelInput input = ThreeDocuments();
  for (const int64_t tokens : {0, 15, 100}) {
    const std::vector<ModelInput> pieces = PiecesOf(input, tokens);
    ASSERT_EQ(pieces.size(), 1u);
    EXPECT_TRUE(pieces[0].tokens_n.is_same(input.tokens_n));
    EXPECT_FALSE(pieces[0].continues);
  }
}

TEST(InputPiecesTest, ItIsCutAtEveryLengthWhateverTheSpans) {
  const std::vector<ModelInput> pieces = PiecesOf(ThreeDocuments(), 4);
  ASSERT_EQ(pieces.size(), 4u);
  const std::vector<std::vector<int32_t>> starts = {{0, 4}, {0, 1, 2, 4}, {0, 4}, {0, 3}};
  const std::vector<bool> continues = {false, true, true, true};
  for (size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(pieces[i].span_starts, starts[i]) << i;
    EXPECT_EQ(pieces[i].continues, continues[i]) << i;
  }
}

TEST(InputPiecesTest, ACutBetweenDocumentsContinuesNothing) {
  const std::vector<ModelInput> pieces = PiecesOf(ThreeDocuments(), 6);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_FALSE(pieces[1].continues);
  EXPECT_TRUE(pieces[2].continues);
}

TEST(InputPiecesTest, TogetherTheyHaveTheRowsOfTheInput) {
  ModelInput input = ThreeDocuments();
  input.weights_n = at::full({15}, 0.5f);
  std::vector<at::Tensor> tokens, positions, labels, weights;
  for (const ModelInput& piece : PiecesOf(input, 7)) {
    tokens.push_back(piece.tokens_n);
    positions.push_back(piece.positions_n);
    labels.push_back(piece.labels_n);
    weights.push_back(piece.weights_n);
  }
  EXPECT_TRUE(at::equal(at::cat(tokens), input.tokens_n));
  EXPECT_TRUE(at::equal(at::cat(positions), input.positions_n));
  EXPECT_TRUE(at::equal(at::cat(labels), input.labels_n));
  EXPECT_TRUE(at::equal(at::cat(weights), input.weights_n));
}

TEST(InputPiecesTest, ARowDropsTheSameInEveryPiece) {
  ModelInput input = ThreeDocuments();
  // Two samples, the second of which begins in its middle.
  input.dropout = {.seed = 3,
                   .step = 2,
                   .samples = {{.index = 4, .row = 0, .token = 0}, {.index = 7, .row = 6, .token = 20}}};
  const at::Tensor whole_n = input.dropout->RowNumbers(15);
  for (const int64_t tokens : {1, 4, 6, 7}) {
    std::vector<at::Tensor> rows;
    for (const ModelInput& piece : PiecesOf(input, tokens)) {
      EXPECT_EQ(piece.dropout->seed, 3u);
      EXPECT_EQ(piece.dropout->step, 2);
      rows.push_back(piece.dropout->RowNumbers(piece.tokens_n.numel()));
    }
    EXPECT_TRUE(at::equal(at::cat(rows), whole_n)) << tokens;
  }
}

}  // namespace
}  // namespace trainwright
