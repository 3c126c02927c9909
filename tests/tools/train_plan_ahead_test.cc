// What the tool `train` tells before it trains, --dry-run and --explain, and the levers that it tells about.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

using ::testing::HasSubstr;

class TrainPlanAheadTest : public TrainProcessTest {
 protected:
  void SetUp() override {
    WriteModel("tiny.json", TinyLlamaOf(32, 2));
    WriteShards();
  }
  /// The row of an option in the summary of --explain.
  nlohmann::json Explained(const std::string& summary, const std::string& option) {
    const nlohmann::json whole = Json(summary);
    for (const nlohmann::json& row : whole.at("options")) {
      if (row.at("option") == option) return row;
    }
    return {};
  }
};

struct DryRunCase {
  int hidden_size, layers, batch;
  const char* precision;
};

std::string NameOf(const DryRunCase& run) {
  return std::to_string(run.hidden_size) + "x" + std::to_string(run.layers) + "_batch" +
         std::to_string(run.batch) + "_" + run.precision;
}
void PrintTo(const DryRunCase& run, std::ostream* out) {
  *out << NameOf(run);
}

class TrainDryRunTest : public TrainPlanAheadTest, public testing::WithParamInterface<DryRunCase> {};

TEST_P(TrainDryRunTest, TellsTheRunsPeakMemoryWithinATenth) {
  const DryRunCase& param = GetParam();
  WriteModel("model.json", TinyLlamaOf(param.hidden_size, param.layers));
  const std::string train = std::string("train -q --model model.json --steps 2 --seq 128 --batch ") +
                            std::to_string(param.batch) + " --mixed-precision " + param.precision;
  const ProcessResult told = Shell(train + " --dry-run --summary told.json");
  ASSERT_EQ(told.exit_status, 0) << told.standard_error;
  EXPECT_FALSE(std::filesystem::exists(folder_.path("runs")));
  ASSERT_EQ(Shell(train + " --out run --summary ran.json").exit_status, 0);

  const nlohmann::json memory = Json("told.json").at("memory_bytes");
  const auto total = memory.at("total").get<double>();
  const auto peak = Json("ran.json").at("max_memory_bytes").get<double>();
  EXPECT_NEAR(total, peak, 0.1 * peak) << memory;
  // Most of it is told by the objects that hold it, or the total would hide a wrong part.
  EXPECT_GT(memory.at("activations").get<double>(), 0.3 * total) << memory;
  EXPECT_LT(memory.at("products").get<double>(), 0.2 * total) << memory;
}

INSTANTIATE_TEST_SUITE_P(Sizes, TrainDryRunTest,
                         testing::Values(DryRunCase{32, 16, 128, "no"}, DryRunCase{32, 16, 128, "bf16"},
                                         DryRunCase{48, 12, 96, "no"}, DryRunCase{48, 12, 96, "bf16"}),
                         [](const auto& info) { return NameOf(info.param); });

TEST_F(TrainPlanAheadTest, DryRunTellsStatesStepsTokensTimeAndDisk) {
  const std::string train = "train -q --model tiny.json --steps 30 --batch 2 --save-every 10 --keep 2 ";
  const ProcessResult told = Shell(train + "--dry-run --summary told.json");
  ASSERT_EQ(told.exit_status, 0) << told.standard_error;
  EXPECT_THAT(told.standard_output, HasSubstr("optimizer's moments"));
  EXPECT_THAT(told.standard_output, HasSubstr("measured: one micro-batch of"));
  ASSERT_EQ(Shell(train + "--out run --summary ran.json").exit_status, 0);
  const nlohmann::json summary = Json("told.json"), ran = Json("ran.json");
  EXPECT_EQ(summary.at("steps"), 30);
  EXPECT_NEAR(summary.at("tokens").get<double>(), ran.at("tokens").get<double>(),
              30);  // a mean, rounded down
  EXPECT_GT(summary.at("time_s").get<double>(), 0);
  const auto memory = [&](const char* name) { return summary.at("memory_bytes").at(name).get<int64_t>(); };
  const auto parameters = summary.at("parameters").get<int64_t>();
  EXPECT_NEAR(static_cast<double>(memory("parameters")), 4.0 * static_cast<double>(parameters), 64.0 * 64);
  EXPECT_EQ(memory("gradients"), memory("parameters"));
  EXPECT_EQ(memory("optimizer"), 2 * memory("parameters"));
  EXPECT_EQ(memory("compute_copy"), 0);
  const std::string du = Shell("du -sb run | cut -f 1").standard_output;
  EXPECT_NEAR(summary.at("disk_bytes").get<double>(), std::stod(du), 0.1 * std::stod(du));
}

TEST_F(TrainPlanAheadTest, DryRunCountsTheBestCheckpointsBesideTheNewest) {
  const std::string train =
      "train -q --model tiny.json --steps 30 --batch 2 --save-every 5 --eval-split 0.1 --keep 1 --dry-run ";
  ASSERT_EQ(Shell(train + "--summary newest.json").exit_status, 0);
  ASSERT_EQ(Shell(train + "--keep-best 2 --summary best.json").exit_status, 0);
  const nlohmann::json newest = Json("newest.json"), best = Json("best.json");
  EXPECT_EQ(best.at("disk_bytes").get<int64_t>() - newest.at("disk_bytes").get<int64_t>(),
            2 * newest.at("checkpoint_bytes").get<int64_t>());
}

TEST_F(TrainPlanAheadTest, DryRunOfAModelThatDoesNotFitSaysSoAndExitsWithOne) {
  WriteModel("huge.json", TinyLlamaOf(1 << 20, 100));  // 6 PB of weights
  const ProcessResult told =
      Shell("train -q --model huge.json --steps 30 --batch 2 --dry-run --summary told.json");
  EXPECT_EQ(told.exit_status, 1) << told.standard_error;
  EXPECT_THAT(told.standard_output, HasSubstr("does not fit"));
  EXPECT_THAT(told.standard_output, HasSubstr("optimizer"));
  EXPECT_THAT(told.standard_output, HasSubstr("--model"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("runs")));
  const nlohmann::json summary = Json("told.json");
  EXPECT_EQ(summary.at("fits"), false);
  EXPECT_EQ(summary.at("largest_part"), "optimizer");
  EXPECT_EQ(summary.at("exit_status"), 1);
  EXPECT_LT(summary.at("max_memory_bytes").get<int64_t>(), int64_t{1} << 30);
}

TEST_F(TrainPlanAheadTest, ExplainNamesEveryKindOfOrigin) {
  const ProcessResult told = Shell(
      "printf 'clip: 0.5\\nlr: 0.002\\n' > run.yaml; TRAINWRIGHT_SEED=7 TRAINWRIGHT_LR=0.004 "
      "train -q --model tiny.json --config run.yaml --beta2 0.9 --explain --summary told.json");
  ASSERT_EQ(told.exit_status, 0) << told.standard_error;
  EXPECT_FALSE(std::filesystem::exists(folder_.path("runs")));
  const auto expect = [&](const char* option, const std::string& value, const std::string& origin) {
    const nlohmann::json row = Explained("told.json", option);
    ASSERT_FALSE(row.is_null()) << option;
    EXPECT_EQ(row.at("value"), value) << option;
    EXPECT_EQ(row.at("origin"), origin) << option;
  };
  expect("beta2", "0.9", "command line");
  expect("seed", "7", "environment");
  expect("lr", "0.004", "environment");  // goes before the file
  expect("clip", "0.5", "config");
  expect("keep", "3", "default");
  expect("weight-decay", "0.1", "default");
  expect("batch", "16", "auto");
  expect("workers", "0", "auto");  // of so little data
  expect("threads", "1", "environment");
  EXPECT_THAT(Explained("told.json", "clip").at("reason").get<std::string>(), HasSubstr("run.yaml line 1"));
  EXPECT_THAT(Explained("told.json", "seed").at("reason").get<std::string>(), HasSubstr("TRAINWRIGHT_SEED"));
  EXPECT_THAT(Explained("told.json", "batch").at("reason").get<std::string>(),
              HasSubstr("about 2048 tokens a micro-batch suit a CPU"));
  EXPECT_THAT(Explained("told.json", "peak-tflops").at("reason").get<std::string>(),
              HasSubstr("not known for this device, so mfu is null"));
  EXPECT_THAT(told.standard_output, HasSubstr("command line"));
}

TEST_F(TrainPlanAheadTest, ExplainNamesTheCheckpointOfAResumedRun) {
  ASSERT_EQ(Shell("train -q --model tiny.json --steps 4 --batch 2 --max-minutes 0.00001 --clip 0.5 --out run")
                .exit_status,
            0);
  const std::string before = Shell("cat run/metrics.jsonl; ls -R run").standard_output;
  const ProcessResult told =
      Shell("train -q --resume --out run --seed 0 --explain --dry-run --summary told.json");
  ASSERT_EQ(told.exit_status, 0) << told.standard_error;
  EXPECT_EQ(Explained("told.json", "clip").at("origin"), "checkpoint");
  EXPECT_EQ(Explained("told.json", "clip").at("value"), "0.5");
  EXPECT_EQ(Explained("told.json", "seed").at("origin"), "command line");
  EXPECT_EQ(Json("told.json").at("steps"), 3);  // one is taken
  EXPECT_EQ(Shell("cat run/metrics.jsonl; ls -R run").standard_output, before);
}

TEST_F(TrainPlanAheadTest, TheLoaderChangesNoBitAndEveryLeverResumes) {
  const std::string train =
      "train -q --model tiny.json --steps 12 --batch 3 --schedule one-cycle --cycle-momentum --beta2 0.98 "
      "--z-loss 1e-3 --label-smoothing 0.1 --drop-last ";
  ASSERT_EQ(Shell(train + "--workers 0 --out alone").exit_status, 0);
  ASSERT_EQ(Shell(train + "--workers 3 --prefetch 2 --out helped").exit_status, 0);
  ASSERT_EQ(Shell(train + "--max-minutes 0.00001 --out cut").exit_status, 0);
  EXPECT_THAT(Shell("train -q --resume --out cut --schedule wsd").standard_error, HasSubstr("--schedule"));
  ASSERT_EQ(Shell(train + "--resume --out cut").exit_status, 0);
  EXPECT_EQ(WeightsOf("helped"), WeightsOf("alone"));
  EXPECT_EQ(WeightsOf("cut"), WeightsOf("alone"));
}

}  // namespace
}  // namespace trainwright::test
