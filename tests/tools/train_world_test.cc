// What `train --dry-run --world` tells of ranks that are not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

using ::testing::HasSubstr;

class TrainWorldTest : public TrainProcessTest {
 protected:
  void SetUp() override {
    WriteModel("tiny.json", TinyLlamaOf(32, 2));
    WriteShards();
  }
  ProcessResult Train(const std::string& options) {
    return Shell("train -q --steps 30 --batch 2 --dry-run --summary told.json " + options);
  }
  /// A world of the summary.
  nlohmann::json World(size_t index) { return Json("told.json").at("world").at("worlds").at(index); }
};

/// The shape that Meta published, whose parameters its card counts as 8,030,261,248.
constexpr char kEightBillion[] = R"json({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
  "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5,
  "rope_theta": 500000.0, "tie_word_embeddings": false, "hidden_act": "silu"})json";

TEST_F(TrainWorldTest, TellsBytesOfTheRingTimeAndMemoryBesideThoseOfOneProcess) {
  const ProcessResult told = Train("--model tiny.json --world 1,2,4 --bandwidth 100MB --latency 100us");
  ASSERT_EQ(told.exit_status, 0) << told.standard_error;
  EXPECT_THAT(told.standard_output, HasSubstr("measured: one micro-batch of"));
  EXPECT_THAT(told.standard_output, HasSubstr("Assumed:"));
  const nlohmann::json one = World(0).at("sharding").at(0), four = World(2).at("sharding").at(0);
  EXPECT_EQ(one.at("gradients").at("sent_bytes"), 0);
  // The tiny model is one bucket, whose bytes are those of the fp32 gradients.
  const auto gradients = Json("told.json").at("memory_bytes").at("gradients").get<int64_t>();
  EXPECT_EQ(four.at("gradients").at("sent_bytes"), 2 * 3 * (gradients / 4));
  EXPECT_EQ(four.at("gradients").at("messages"), 6);
  EXPECT_GT(four.at("step_time_s").get<double>(), one.at("step_time_s").get<double>());
  EXPECT_LT(four.at("efficiency").get<double>(), 1.0);
  EXPECT_FALSE(Exists("runs"));
}

TEST_F(TrainWorldTest, OfLargeModelsOnGpusNothingIsRunOrAllocated) {
  WriteFile(folder_.path("8b.json"), kEightBillion);
  const std::string on_paper =
      "--model 8b.json --mixed-precision bf16 --seq 2048 --checkpoint-activations full --world 8,512 "
      "--bandwidth "
      "50GB --device-tflops 400 --device-memory 80GiB ";
  const ProcessResult sharded = Train(on_paper + "--zero 2");
  EXPECT_EQ(sharded.exit_status, 0) << sharded.standard_output << sharded.standard_error;
  const nlohmann::json summary = Json("told.json"), eight = World(0).at("sharding");
  EXPECT_LT(summary.at("max_memory_bytes").get<int64_t>(), int64_t{1} << 30);
  EXPECT_EQ(World(0).at("verdict"), "fits");
  const auto sent = [&](size_t row) { return eight.at(row).at("gradients").at("sent_bytes").get<double>(); };
  EXPECT_NEAR(sent(0), 2.0 * 7 / 8 * 4 * 8'030'261'248, 1e-4 * sent(0));
  EXPECT_GE(sent(2), sent(0) / 2);  // layers do not end with whole blocks of each rank
  EXPECT_LT(sent(2), sent(0) / 2 * 1.001);
  const auto part = [&](size_t row, const char* name) {
    return eight.at(row).at("memory_bytes").at(name).get<double>();
  };
  EXPECT_NEAR(part(0, "optimizer"), 8.0 * 8'030'261'248, 1e-4 * part(0, "optimizer"));
  EXPECT_NEAR(part(1, "optimizer"), part(0, "optimizer") / 8, 1e-3 * part(0, "optimizer"));
  EXPECT_EQ(part(1, "compute_copy"), part(0, "compute_copy"));

  const ProcessResult whole = Train(on_paper);  // 18 bytes a parameter
  EXPECT_EQ(whole.exit_status, 1);
  EXPECT_THAT(whole.standard_output, HasSubstr("Nearest: --zero "));
  EXPECT_EQ(World(0).at("verdict"), "fits otherwise");
}

TEST_F(TrainWorldTest, RefusesASizeThatNeedsTensorParallelismAndNamesWhatComesNearest) {
  WriteFile(folder_.path("8b.json"), kEightBillion);
  const ProcessResult told = Train(
      "--model 8b.json --mixed-precision bf16 --seq 2048 --zero 2 --world 512 --bandwidth 50GB "
      "--device-tflops "
      "400 --device-memory 12GiB");
  EXPECT_EQ(told.exit_status, 1) << told.standard_error;
  EXPECT_THAT(told.standard_output, HasSubstr("needs tensor or pipeline parallelism"));
  EXPECT_THAT(told.standard_output, HasSubstr("--lora 16 --quant nf4"));
  EXPECT_EQ(World(0).at("verdict"), "needs tensor or pipeline parallelism");
}

TEST_F(TrainWorldTest, RefusesOptionsThatAreMissingOrHaveNoMeaning) {
  const auto refused = [&](const std::string& options) {
    const ProcessResult told = Shell("train -q --model tiny.json --steps 3 --out run " + options);
    EXPECT_EQ(told.exit_status, 2) << options;
    return told.standard_error;
  };
  EXPECT_THAT(refused("--dry-run --world 8"), HasSubstr("--bandwidth"));
  EXPECT_THAT(refused("--world 8 --bandwidth 1GB"), HasSubstr("--dry-run"));
  EXPECT_THAT(refused("--dry-run --bandwidth 1GB"), HasSubstr("--world"));
  EXPECT_THAT(refused("--dry-run --device-memory 1GB"), HasSubstr("--world"));
  EXPECT_THAT(refused("--dry-run --world 8,0 --bandwidth 1GB"), HasSubstr("8,64,512"));
  EXPECT_THAT(refused("--dry-run --world 8, --bandwidth 1GB"), HasSubstr("8,64,512"));
  EXPECT_THAT(refused("--dry-run --world 8 --bandwidth 1GB --zero 3"), HasSubstr("--zero 2 divides"));
  EXPECT_FALSE(Exists("run"));
}

}  // namespace
}  // namespace trainwright::test
