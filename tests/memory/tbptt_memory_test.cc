// What is told of a run that takes its micro-batches in pieces.
#include <gtest/gtest.h>

#include <vector>

#include "lib/memory/memory_advice.h"
#include "lib/memory/training_memory.h"
#include "tests/model/families.h"
#include "tests/model/ten_models.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

MemoryRequest InPieces(const ModelConfig& model, int64_t tbptt) {
  return {.model = model, .tbptt = tbptt, .optimizers = BuiltInOptimizers()};
}

TEST(TbpttMemoryTest, ItIsThatOfAPieceHoweverLongTheSample) {
  const ModelConfig model = test::TenOf(test::TenKinds().front().fields);
  const auto memory = [&](int64_t tbptt, int64_t tokens) {
    return TrainingMemory(test::Families(), InPieces(model, tbptt), EqualSamples(1, tokens));
  };
  const MemoryParts piece = memory(0, 64), pieces = memory(64, 640), whole = memory(0, 640);
  EXPECT_EQ(pieces.activations, piece.activations);
  EXPECT_EQ(pieces.logits, piece.logits);
  EXPECT_EQ(pieces.products, piece.products);
  EXPECT_GT(whole.activations, 5 * piece.activations);
}

TEST(TbpttMemoryTest, AModelWithoutAStateIsRefused) {
  const ModelConfig model = test::Families().descriptions().PresetConfig("llama-1m", 96);
  EXPECT_EQ(
      test::CodeOf([&] { TrainingMemory(test::Families(), InPieces(model, 64), EqualSamples(1, 128)); }),
      ErrorCode::kUsage);
}

TEST(TbpttMemoryTest, ItIsAdvisedWhereAModelHasAStateAndNoPiecesYet) {
  const ModelConfig ten = test::TenOf(test::TenKinds().front().fields),
                    llama = test::Families().descriptions().PresetConfig("llama-1m", 96);
  const auto left = [](MemoryRequest request) {
    return LeversLeft(request, /*auto_oom=*/false, {MemoryLever::kTbptt, MemoryLever::kBatch});
  };
  using Levers = std::vector<MemoryLever>;
  EXPECT_EQ(left(InPieces(ten, 0)), (Levers{MemoryLever::kTbptt, MemoryLever::kBatch}));
  EXPECT_EQ(left(InPieces(ten, 64)), Levers{MemoryLever::kBatch});
  EXPECT_EQ(left(InPieces(llama, 0)), Levers{MemoryLever::kBatch});
  MemoryRequest of_texts = InPieces(ten, 0);
  of_texts.objective_levers = {MemoryLever::kTextLengths};
  EXPECT_EQ(left(of_texts), Levers{MemoryLever::kBatch});
}

}  // namespace
}  // namespace trainwright
