// What --compile makes of runs on the device that refuses the host.
#include "lib/train/compile_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "lib/base/error.h"
#include "tests/refusing_device/device_run.h"
#include "tests/support/refusing_device/recorded_work.h"
#include "tests/support/refusing_device/refusing_device.h"

namespace trainwright {
namespace {

using test::kRefusingDevice;
using testing::HasSubstr;

class CompileChoiceTest : public testing::Test {
 protected:
  CompileChoiceTest() {
    run_.compute.device = kRefusingDevice;
    run_.plan = test::TinyPlan();
    run_.model.config = test::TinyModel();
  }
  /// A model of the run.
  LanguageModel& Model() {
    model_ = MakeModel(test::Families(), run_.model.config, run_.plan.precision, kRefusingDevice, 1,
                       AttentionBackend::kAuto, run_.plan.tuning);
    return *model_;
  }
  void Choose(CompileMode mode, LanguageModel* model) {
    ChooseCompile(mode, *ObjectiveOf(run_.plan, BuiltInObjectives()),
                  MakeGraphRecorder(test::DeviceGraphs(), 0), model, &run_);
  }
  /// Auto is off and says why, graph is refused for that reason.
  void ExpectOff(const std::string& reason) {
    LanguageModel& model = Model();
    testing::internal::CaptureStderr();
    Choose(CompileMode::kAuto, &model);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("compile off, because " + reason));
    EXPECT_EQ(model.graph_counts(), nullptr);
    try {
      Choose(CompileMode::kGraph, &model);
      FAIL() << "taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      EXPECT_THAT(error.what(), HasSubstr(reason));
    }
    run_.compute.compile = CompileMode::kGraph;
    EXPECT_THROW(RequireCompile(run_, *ObjectiveOf(run_.plan, BuiltInObjectives())), Error);
  }

  ResolvedRun run_;
  std::unique_ptr<LanguageModel> model_;
};

TEST_F(CompileChoiceTest, GraphsAreUsedWhereTheyAreAskedForAndCanBe) {
  for (const CompileMode mode : {CompileMode::kGraph, CompileMode::kAuto}) {
    LanguageModel& model = Model();
    Choose(mode, &model);
    EXPECT_NE(model.graph_counts(), nullptr);
  }
  LanguageModel& model = Model();
  Choose(CompileMode::kOff, &model);
  EXPECT_EQ(model.graph_counts(), nullptr);
}

TEST_F(CompileChoiceTest, IsOffAndSaysSoForQuantisedWeights) {
  run_.plan.tuning = {.lora = LoraOptions{.rank = 2, .alpha = 4}, .frozen_format = WeightFormat::kNf4};
  ExpectOff("the base weights are quantised (--quant)");
}

TEST_F(CompileChoiceTest, IsOffAndSaysSoForDropoutOfAdapters) {
  run_.plan.tuning.lora = LoraOptions{.rank = 2, .alpha = 4, .dropout = 0.1};
  ExpectOff("adapters drop other elements at every step (--lora-dropout)");
}

TEST_F(CompileChoiceTest, IsOffAndSaysSoForOffloading) {
  run_.compute.offload.activations = true;
  ExpectOff("the host moves tensors while passes run (--offload)");
}

TEST_F(CompileChoiceTest, IsOffAndSaysSoForRanksWithOneMicroBatch) {
  run_.plan.ranks = 2;
  run_.plan.accum = 1;
  ExpectOff("ranks exchange gradients during the only micro-batch of a step (--accum 1)");
}

TEST_F(CompileChoiceTest, IsOffAndSaysSoForAnObjectiveWithPassesOfItsOwn) {
  run_.plan.objective = "grit";
  ExpectOff("the objective grit has passes of its own (--objective)");
}

}  // namespace
}  // namespace trainwright
