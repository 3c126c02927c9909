// The engine of train on the device that refuses the host. Of several ranks each is a process with a device
// of its own: what they exchange, they copy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/checkpoint/checkpoint.h"
#include "lib/run/metrics_log.h"
#include "lib/train/train_state.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

class DeviceEngineTest : public testing::Test {
 protected:
  DeviceEngineTest() {
    std::string text;
    for (int line = 0; line < 60; ++line) text += "abcdefgh " + std::to_string(line) + " abcdefgh\n";
    test::WriteFile(folder_.path("in.txt"), text);
    test::WriteFile(
        folder_.path("model.json"),
        R"({"model_type":"gpt2","vocab_size":258,"n_embd":16,"n_layer":2,"n_inner":24,"n_head":2,)"
        R"("n_positions":64,"activation_function":"gelu_new"})");
    Shell("pretokenize -q in.txt | pack -q --chunk 64 -o shards");
  }
  std::string Shell(const std::string& command) const {
    const test::ProcessResult result = test::RunShell("cd '" + folder_.path() + "' && " + command);
    EXPECT_EQ(result.exit_status, 0) << result.standard_error;
    return result.standard_error;
  }
  /// \returns what it says
  std::string Train(const std::string& out, const std::string& options,
                    const std::string& environment = "") const {
    return Shell(environment +
                 " '" TRAINWRIGHT_REFUSING_ENGINE
                 "' --data shards --model model.json --steps 6 --batch 1 --seq 32 --lr 1e-2 --seed 3 "
                 "--threads 1 --log-every 1 --progress never --out " +
                 out + " " + options);
  }
  std::vector<double> Losses(const std::string& out) const {
    std::vector<double> losses;
    ForEachMetricsRecord(folder_.path(out) + "/metrics.jsonl", [&](const nlohmann::ordered_json& record) {
      if (record["type"] == "step") losses.push_back(record["loss_nats"]);
    });
    return losses;
  }
  std::string Weights(const std::string& out) const {
    return test::ReadFile(folder_.path(out) + "/latest/model.safetensors");
  }

  const test::TemporaryFolder folder_;
};

using DeviceRanksTest = DeviceEngineTest;

TEST_F(DeviceRanksTest, TwoRanksTakeTheStepsOfOneProcessOnACpu) {
  Train("cpu", "--device cpu --mixed-precision no --accum 4");
  for (const std::string zero : {"0", "1", "2"}) {
    const std::string out = "zero" + zero;
    const std::string said =
        Train(out, "--device cuda --mixed-precision no --nproc 2 --accum 2 --zero " + zero);
    EXPECT_THAT(said, testing::HasSubstr("the ranks' GPUs exchange through the host, by Gloo"));
    EXPECT_THAT(Losses(out), testing::Pointwise(testing::DoubleNear(1e-4), Losses("cpu"))) << zero;
  }
}

TEST_F(DeviceRanksTest, TwoRanksInReducedPrecisionFollowOneProcessOnACpu) {
  for (const std::string precision : {"bf16", "fp16"}) {
    Train("cpu-" + precision, "--device cpu --accum 4 --mixed-precision " + precision);
    Train(precision, "--device cuda --nproc 2 --accum 2 --mixed-precision " + precision,
          "TRAINWRIGHT_EMULATED_KERNELS=1");
    EXPECT_THAT(Losses(precision), testing::Pointwise(testing::DoubleNear(2e-2), Losses("cpu-" + precision)))
        << precision;
  }
}

TEST_F(DeviceRanksTest, TwoRanksOfAnExactWorldEndInTheBitsOfOne) {
  Train("one", "--device cuda --mixed-precision bf16 --exact-world 2 --accum 4");
  Train("two", "--device cuda --mixed-precision bf16 --exact-world 2 --accum 2 --nproc 2");
  EXPECT_EQ(Weights("one"), Weights("two"));
}

/// Of a run on the device, of a memory that one micro-batch of the usual size fits and two do not.
TEST_F(DeviceRanksTest, TwoRanksThatShareADeviceTakeMicroBatchesThatFitTheirHalf) {
  constexpr int64_t kUsualSamples = 16384 / 32;
  const auto plan_of = [&](const std::string& out, const std::string& options) {
    Shell("TRAINWRIGHT_REFUSING_DEVICE_BYTES=120000000 '" TRAINWRIGHT_REFUSING_ENGINE
          "' --data shards --model model.json --device cuda --mixed-precision no --steps 1 --seq 32 "
          "--threads 1 --progress never --out " +
          out + options);
    return ReadTrainState(folder_.path(out) + "/latest/" + kStateFileName).plan;
  };
  EXPECT_EQ(plan_of("one", "").batch, kUsualSamples);
  const TrainPlan two = plan_of("two", " --nproc 2");
  EXPECT_LT(two.batch, kUsualSamples);
  EXPECT_EQ(two.samples_per_step(), 2 * kUsualSamples);
}

/// The last record of a run.
nlohmann::ordered_json End(const std::string& metrics) {
  nlohmann::ordered_json last;
  ForEachMetricsRecord(metrics, [&](const nlohmann::ordered_json& record) { last = record; });
  return last;
}

using DeviceGraphRunTest = DeviceEngineTest;

TEST_F(DeviceGraphRunTest, ARunWithGraphsFollowsOneWithoutAndReportsThem) {
  const std::string options = "--device cuda --mixed-precision bf16 --accum 2";
  Train("off", options);
  const std::string said = Train("graph", options + " --compile graph");
  EXPECT_THAT(said, testing::HasSubstr("graphs: micro-batches in one launch "));
  EXPECT_THAT(Losses("graph"), testing::Pointwise(testing::DoubleNear(1e-2), Losses("off")));
  const nlohmann::ordered_json graphs = End(folder_.path("graph") + "/metrics.jsonl").at("graphs");
  EXPECT_GT(graphs.at("launched").get<int64_t>(), 0);
  EXPECT_EQ(graphs.at("launched").get<int64_t>() + graphs.at("queued").get<int64_t>(), 12);
  EXPECT_GT(graphs.at("updates").at("launched").get<int64_t>(), 0);
  EXPECT_GE(graphs.at("record_s").get<double>(), 0);
}

TEST_F(DeviceGraphRunTest, OfTwoRanksAllMicroBatchesButTheLastAreRepeated) {
  const std::string options = "--device cuda --mixed-precision bf16 --nproc 2 --accum 3";
  Train("off", options);
  Train("graph", options + " --compile graph");
  EXPECT_THAT(Losses("graph"), testing::Pointwise(testing::DoubleNear(1e-2), Losses("off")));
  const nlohmann::ordered_json graphs = End(folder_.path("graph") + "/metrics.jsonl").at("graphs");
  EXPECT_GT(graphs.at("launched").get<int64_t>(), 0);
  EXPECT_GE(graphs.at("queued").get<int64_t>(), 6);  // the last of each step
  EXPECT_EQ(graphs.at("launched").get<int64_t>() + graphs.at("queued").get<int64_t>(), 18);
}

TEST_F(DeviceGraphRunTest, AResumedRunWithGraphsEndsInTheBitsOfTheWholeOne) {
  const std::string options = "--device cuda --mixed-precision bf16 --accum 2 --compile graph";
  Train("whole", options);
  Train("parts", options + " --max-minutes 0.0001");
  Shell("'" TRAINWRIGHT_REFUSING_ENGINE
        "' --resume --out parts --max-minutes 0 --compile graph --progress never");
  EXPECT_EQ(Weights("whole"), Weights("parts"));
}

}  // namespace
}  // namespace trainwright
