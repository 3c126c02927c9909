// How train makes samples and micro-batches of its data: --packing, --group-by-length,
// --max-tokens-per-batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

using testing::HasSubstr;

class TrainBatchesTest : public TrainProcessTest {
 protected:
  void SetUp() override {
    WriteModel("tiny.json");
    WriteShards();
  }

  /// Trains 8 steps of 8 samples into a folder.
  ProcessResult Train(const std::string& options) {
    return Shell("train -q --data shards --model tiny.json --seq 48 --steps 8 --batch 4 --accum 2 --seed 3 " +
                 options);
  }
  void MustTrain(const std::string& options) {
    const ProcessResult run = Train(options);
    ASSERT_EQ(run.exit_status, 0) << run.standard_error;
  }
  std::vector<nlohmann::json> Steps(const std::string& run) {
    std::vector<nlohmann::json> steps;
    for (const nlohmann::json& record : Metrics(run)) {
      if (record["type"] == "step") steps.push_back(record);
    }
    return steps;
  }
};

TEST_F(TrainBatchesTest, ALimitOfTokensKeepsTheSamplesOfAStepAndItsLoss) {
  MustTrain("--out plain");
  MustTrain("--max-tokens-per-batch 100 --out limited");
  const std::vector<nlohmann::json> plain = Steps("plain"), limited = Steps("limited");
  ASSERT_EQ(plain.size(), limited.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(plain[i]["tokens"], limited[i]["tokens"]);
    EXPECT_EQ(plain[i]["labels"], limited[i]["labels"]);
    EXPECT_EQ(limited[i]["effective_batch"], 8);
    EXPECT_NEAR(plain[i]["loss_nats"].get<double>(), limited[i]["loss_nats"].get<double>(), 1e-4);
  }
  // Other sums of the same gradients.
  EXPECT_NE(WeightsOf("plain"), WeightsOf("limited"));
  MustTrain("--max-tokens-per-batch 1000000 --out one");
  MustTrain("--batch 8 --accum 1 --out whole");
  EXPECT_EQ(WeightsOf("one"), WeightsOf("whole"));
}

TEST_F(TrainBatchesTest, ALimitBelowASampleIsRefusedBeforeTheFirstStep) {
  const ProcessResult run = Train("--max-tokens-per-batch 47 --out run");
  EXPECT_EQ(run.exit_status, 3) << run.standard_error;
  EXPECT_THAT(run.standard_error,
              HasSubstr("--max-tokens-per-batch 47: has no room for a sample of 48 tokens"));
  EXPECT_FALSE(Exists("run/checkpoints"));
}

TEST_F(TrainBatchesTest, ALimitGoesWithNothingThatCountsMicroBatches) {
  for (const char* other : {"--find-batch", "--exact-world 2"}) {
    const ProcessResult run = Train(std::string("--max-tokens-per-batch 100 --out run ") + other);
    EXPECT_EQ(run.exit_status, 2) << other << ": " << run.standard_error;
    EXPECT_THAT(run.standard_error, HasSubstr("--max-tokens-per-batch"));
  }
}

TEST_F(TrainBatchesTest, EachWayOfMakingSamplesHasWeightsOfItsOwnAndResumesBitForBit) {
  std::vector<std::string> all;
  for (const char* way : {"--max-tokens-per-batch 100", "--packing off", "--group-by-length",
                          "--packing off --group-by-length --max-tokens-per-batch 60"}) {
    SCOPED_TRACE(way);
    MustTrain(std::string(way) + " --save-every 4 --keep 0 --out whole");
    ASSERT_EQ(Shell("mkdir -p half/checkpoints && cp whole/config.yaml half/ && "
                    "cp -r whole/checkpoints/step-00000004 half/checkpoints/ && "
                    "train -q --resume --data shards --out half")
                  .exit_status,
              0);
    const std::string weights = WeightsOf("whole");
    EXPECT_EQ(WeightsOf("half"), weights);
    all.push_back(weights);
    Shell("rm -rf whole half");
  }
  MustTrain("--out plain");
  all.push_back(WeightsOf("plain"));
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t k = 0; k < i; ++k) EXPECT_NE(all[i], all[k]) << i << " and " << k;
  }
}

TEST_F(TrainBatchesTest, AnEpochHasTheSameTokensHoweverItsSamplesAreGrouped) {
  std::vector<int64_t> tokens;
  for (const char* way : {"", "--group-by-length"}) {
    const ProcessResult run = Shell(
        std::string("rm -rf run; train -q --data shards --model tiny.json --seq 48 --epochs 1 --batch 1 "
                    "--packing off --save-every 0 --out run ") +
        way);
    ASSERT_EQ(run.exit_status, 0) << run.standard_error;
    tokens.push_back(Steps("run").back()["tokens_seen"].get<int64_t>());
  }
  EXPECT_EQ(tokens[0], tokens[1]);
}

TEST_F(TrainBatchesTest, AResumedRunKeepsItsSamplesAndMayDivideThemOtherwise) {
  MustTrain("--packing off --save-every 4 --keep 0 --out run --steps 4");
  const ProcessResult packed = Shell("train -q --resume --data shards --out run --packing on");
  EXPECT_EQ(packed.exit_status, 2) << packed.standard_error;
  EXPECT_THAT(packed.standard_error, HasSubstr("--packing"));
  const ProcessResult limited = Shell(
      "train -q --resume --data shards --out run --max-tokens-per-batch 64 --explain | grep max-tokens");
  EXPECT_THAT(limited.standard_output, HasSubstr("64")) << limited.standard_error;
}

}  // namespace
}  // namespace trainwright::test
