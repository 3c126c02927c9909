// Training with a residual stream in bf16 beside training with one in fp32.
#include <gtest/gtest.h>

#include <string>

#include "lib/base/error.h"
#include "lib/train/compute_choice.h"
#include "tests/model/ten_models.h"
#include "tests/train/tiny_training.h"

namespace trainwright {
namespace {

/// Mean losses of the first and the last ten steps of sixty.
struct LossCurve {
  double first = 0, last = 0;
};

LossCurve CurveOf(Precision residual) {
  const test::MemoryShardSet set = test::CountingDocuments();
  const TrainPlan plan = test::TinyPlan(Precision::kBf16);
  ComputeKinds kinds;
  kinds.residual = residual;
  const auto model =
      MakeModel(test::Families(), test::TinyModel(), plan.precision, test::kCpu, plan.seed, kinds);
  SampleStream stream(&set, plan.stream_options());
  Trainer trainer(test::PartsOf(model.get(), &stream, plan), plan, test::kCpu);
  LossCurve curve;
  for (int64_t step = 0; step < plan.schedule.total_steps; ++step) {
    const double loss = trainer.Step().loss_nats;
    if (step < 10) curve.first += loss / 10;
    if (step >= plan.schedule.total_steps - 10) curve.last += loss / 10;
  }
  return curve;
}

TEST(ResidualStreamTrainingTest, TheLossFallsAsThatOfAStreamInFp32) {
  const LossCurve fp32 = CurveOf(Precision::kFp32), bf16 = CurveOf(Precision::kBf16);
  EXPECT_LT(bf16.last, bf16.first / 2);
  EXPECT_NEAR(bf16.first, fp32.first, 0.02 * fp32.first);
  EXPECT_NEAR(bf16.last, fp32.last, 0.05);
}

/// What is refused of --residual-stream bf16.
Error RefusalOf(const std::string& mixed_precision, Precision resolved, const ModelConfig& model) {
  TrainSettings settings;
  settings.residual_stream = "bf16";
  settings.mixed_precision = mixed_precision;
  TrainPlan plan;
  plan.precision = resolved;
  try {
    RequireResidualStream(settings, plan, model);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kNo, "it", "is taken");
}

TEST(ResidualStreamRefusalTest, OfAnotherPrecisionIsByNameAndTellsWhatAutoCameTo) {
  const Error plain = RefusalOf("fp16", Precision::kFp16, test::TinyModel());
  EXPECT_EQ(plain.code(), ErrorCode::kUsage);
  EXPECT_EQ(plain.object(), "--residual-stream");
  EXPECT_NE(std::string(plain.what()).find("computes in fp16"), std::string::npos) << plain.what();
  const Error by_auto = RefusalOf("auto", Precision::kFp32, test::TinyModel());
  EXPECT_NE(std::string(by_auto.what()).find("fp32, to which auto came"), std::string::npos)
      << by_auto.what();
}

TEST(ResidualStreamRefusalTest, OfAModelWithStatesInFp32IsByTheNameOfItsFamily) {
  const Error ten = RefusalOf("bf16", Precision::kBf16, test::TenOf(test::TenKinds()[0].fields));
  EXPECT_EQ(ten.code(), ErrorCode::kUsage);
  EXPECT_NE(std::string(ten.what()).find("family ten, whose states are fp32"), std::string::npos)
      << ten.what();
}

TEST(ResidualStreamRefusalTest, NothingIsRefusedOfATransformerInBf16) {
  EXPECT_EQ(RefusalOf("auto", Precision::kBf16, test::TinyModel()).code(), ErrorCode::kNo);
}

}  // namespace
}  // namespace trainwright
