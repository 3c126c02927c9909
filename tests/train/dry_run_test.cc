// What a dry run says of a run that does not fit; tests/tools/train_plan_ahead_test.cc has those that do.
#include "lib/train/dry_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <optional>

#include "lib/base/signals.h"
#include "lib/io/process_memory.h"
#include "tests/model/families.h"
#include "tests/support/support.h"
#include "tests/train/tiny_training.h"

namespace trainwright {
namespace {

using testing::HasSubstr;

class DryRunTest : public testing::Test {
 protected:
  DryRunReport Run(DryRunRequest request) {
    SampleStream stream(&set_, request.plan.stream_options());
    return DryRun(test::Families(), request, {{kMainLoader, &stream}});
  }
  const test::MemoryShardSet set_ = test::CountingDocuments();
};

TEST_F(DryRunTest, NeverAllocatesAModelThatIsTooLarge) {
  ModelConfig petabytes = test::TinyModel();
  petabytes.hidden_size = int64_t{1} << 20;
  petabytes.intermediate_size = int64_t{1} << 22;
  petabytes.num_heads = petabytes.num_kv_heads = 1 << 13;
  petabytes.head_dim = 128;
  petabytes.num_layers = 100;
  const int64_t peak_before_bytes = PeakResidentBytes();
  const DryRunReport report = Run({.model = petabytes,
                                   .plan = test::TinyPlan(),
                                   .steps = 60,
                                   .optimizers = BuiltInOptimizers(),
                                   .objectives = BuiltInObjectives()});
  EXPECT_LT(PeakResidentBytes() - peak_before_bytes, int64_t{100} << 20);

  EXPECT_EQ(report.measurement, DryRunMeasurement::kNone);
  EXPECT_FALSE(report.fits());
  EXPECT_EQ(report.parameter_count, CountParameters(petabytes));
  EXPECT_EQ(report.memory.optimizer, 8 * CountParameters(petabytes));
  EXPECT_STREQ(LargestPart(report.memory).name, "optimizer");
  const std::string text = FormatDryRun(report);
  EXPECT_THAT(text, HasSubstr("total without activations"));
  EXPECT_THAT(text, HasSubstr("does not fit"));
  EXPECT_THAT(text, HasSubstr("optimizer"));
  EXPECT_THAT(text, HasSubstr("--model"));
  EXPECT_EQ(EncodeDryRun(report).at("fits"), false);
}

TEST_F(DryRunTest, ScalesOneSampleWhereTheMicroBatchIsTooLarge) {
  TrainPlan plan = test::TinyPlan();
  plan.batch = 1024;
  plan.accum = 1;
  const DryRunRequest request = {.model = test::TinyModel(),
                                 .plan = plan,
                                 .steps = 1,
                                 .optimizers = BuiltInOptimizers(),
                                 .objectives = BuiltInObjectives()};
  const DryRunReport whole = Run(request);
  ASSERT_EQ(whole.measurement, DryRunMeasurement::kFullMicroBatch);
  ASSERT_STREQ(LargestPart(whole.memory).name, "activations");

  // Room for the process and the state, not for what the micro-batch needs.
  DryRunRequest limited = request;
  limited.available_bytes = ResidentBytes() + whole.memory.activations / 2;
  const DryRunReport report = Run(limited);
  EXPECT_EQ(report.measurement, DryRunMeasurement::kOneSample);
  EXPECT_FALSE(report.fits());
  EXPECT_LT(report.micro_batch_tokens, whole.micro_batch_tokens / 100);
  EXPECT_NEAR(static_cast<double>(report.memory.activations), static_cast<double>(whole.memory.activations),
              0.3 * static_cast<double>(whole.memory.activations));
  EXPECT_THAT(FormatDryRun(report), HasSubstr("One sample was run"));
  EXPECT_THAT(FormatDryRun(report), HasSubstr("lower --batch"));
}

TEST_F(DryRunTest, FitsIntoTheMemoryThatItAsksFor) {
  DryRunRequest request = {.model = test::TinyModel(),
                           .plan = test::TinyPlan(),
                           .steps = 60,
                           .optimizers = BuiltInOptimizers(),
                           .objectives = BuiltInObjectives()};
  request.available_bytes = int64_t{1} << 40;
  const DryRunReport report = Run(request);
  EXPECT_TRUE(report.fits());
  EXPECT_EQ(FormatDryRun(report).find("does not fit"), std::string::npos);
  EXPECT_EQ(report.available_bytes, request.available_bytes);
}

TEST_F(DryRunTest, ACheckpointOfTheModelAloneHasNoMoments) {
  DryRunRequest request = {.model = test::TinyModel(),
                           .plan = test::TinyPlan(),
                           .steps = 1,
                           .optimizers = BuiltInOptimizers(),
                           .objectives = BuiltInObjectives()};
  const DryRunReport whole = Run(request);
  request.model_only = true;
  EXPECT_EQ(whole.checkpoint_bytes - Run(request).checkpoint_bytes, whole.memory.optimizer);
}

TEST_F(DryRunTest, ACheckpointHasTheWeightsThatAreFrozen) {
  DryRunRequest request = {.model = test::TinyModel(),
                           .plan = test::TinyPlan(),
                           .steps = 1,
                           .model_only = true,
                           .optimizers = BuiltInOptimizers(),
                           .objectives = BuiltInObjectives()};
  const auto trained_bytes = static_cast<double>(Run(request).checkpoint_bytes);
  request.plan.tuning.rules.freeze = "layers";
  constexpr double kPadding = 1024;  // between parameters in memory
  EXPECT_NEAR(static_cast<double>(Run(request).checkpoint_bytes), trained_bytes, kPadding);
}

TEST_F(DryRunTest, ASignalEndsItBetweenItsPasses) {
  const DryRunRequest request = {.model = test::TinyModel(),
                                 .plan = test::TinyPlan(),
                                 .steps = 1,
                                 .optimizers = BuiltInOptimizers(),
                                 .objectives = BuiltInObjectives()};
  SampleStream stream(&set_, request.plan.stream_options());
  SetStopSignalForTest(SIGTERM);
  const std::optional<ErrorCode> code = test::CodeOf([&] {
    DryRun(test::Families(), request, {{kMainLoader, &stream}});
  });
  SetStopSignalForTest(0);
  EXPECT_EQ(code, ErrorCode::kTerminated);
}

TEST_F(DryRunTest, OfAGpuThatIsTooSmallIsToldWithoutTouchingIt) {
  DryRunRequest request = {.model = test::TinyModel(),
                           .plan = test::TinyPlan(Precision::kBf16),
                           .device = at::Device(at::kCUDA),
                           .steps = 1,
                           .optimizers = BuiltInOptimizers(),
                           .objectives = BuiltInObjectives()};
  request.gpu_available_bytes = 1000;
  const DryRunReport report = Run(request);
  EXPECT_EQ(report.measurement, DryRunMeasurement::kShapes);
  EXPECT_FALSE(report.fits());
  EXPECT_EQ(report.missing_bytes(), report.memory.of_model() - 1000);
  EXPECT_GT(report.memory.attention, 0);
  EXPECT_EQ(report.memory.total(), report.memory.of_model() + report.memory.of_host());
  const std::string text = FormatDryRun(report);
  EXPECT_THAT(text, HasSubstr("attention's scratch"));
  EXPECT_THAT(text, HasSubstr("free on the GPU"));
  EXPECT_THAT(text, HasSubstr("Nothing was run on the GPU"));
  const nlohmann::ordered_json json = EncodeDryRun(report);
  EXPECT_EQ(json.at("memory_bytes").at("on_gpu"), report.memory.of_model());
  EXPECT_EQ(json.at("measured"), "shapes");
}

}  // namespace
}  // namespace trainwright
