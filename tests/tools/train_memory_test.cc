// The memory levers of the tool `train`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "lib/base/units.h"
#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

class TrainMemoryTest : public TrainProcessTest {
 protected:
  TrainMemoryTest() : TrainProcessTest("TRAINWRIGHT_MODEL=tiny.json") {}
  void SetUp() override {
    WriteModel("tiny.json", TinyLlamaOf(32, 3));
    WriteShards();
  }
};

TEST_F(TrainMemoryTest, CheckpointedActivationsEndInTheSameWeightsAlsoAcrossAResumption) {
  const ProcessResult result = Shell(R"(
    run() { train -q --steps 6 --batch 2 --save-every 3 --max-minutes 0 "$@" 2> log || cat log; }
    for kind in no least selective full; do
      run --checkpoint-activations $kind --out $kind
      sha256sum < $kind/latest/model.safetensors
    done
    rm -r full/checkpoints/step-00000006
    run --checkpoint-activations selective --out full --resume
    sha256sum < full/latest/model.safetensors)");
  std::istringstream lines(result.standard_output);
  std::vector<std::string> hashes;
  for (std::string line; std::getline(lines, line);) hashes.push_back(line);
  ASSERT_EQ(hashes.size(), 5) << result.standard_output << result.standard_error;
  for (const std::string& hash : hashes) EXPECT_EQ(hash, hashes[0]);
}

TEST_F(TrainMemoryTest, ADryRunTellsWhatCheckpointedActivationsTake) {
  std::vector<int64_t> bytes;
  for (const std::string kind : {"no", "selective", "full", "least"}) {
    const ProcessResult result =
        Shell("train -q --dry-run --steps 2 --batch 2 --seq 64 --checkpoint-activations " + kind +
              " --summary " + kind + ".json");
    ASSERT_EQ(result.exit_status, 0) << result.standard_error;
    bytes.push_back(Json(kind + ".json").at("memory_bytes").at("activations").get<int64_t>());
  }
  // Of each token and layer but one: the inside of the MLP; then qkv, attention, its statistic and the
  // middle.
  const int64_t mlp = 2 * 4 * 32, others = 3 * 32 + 32 + 2 + 32;
  EXPECT_GT(bytes[0], bytes[1]);
  EXPECT_EQ((bytes[0] - bytes[1]) * others, (bytes[1] - bytes[2]) * mlp);
  // Of every layer, and there are three: the output of SwiGLU, half as wide as what it reads.
  EXPECT_EQ((bytes[3] - bytes[0]) * 2 * 2, (bytes[0] - bytes[1]) * 3);
}

TEST_F(TrainMemoryTest, ADryRunOfRanksTellsWhatBecomesOfTheGradientsOfSeveralMicroBatches) {
  WriteModel("wide.json", TinyLlamaOf(256, 4));
  const auto gradients = [&](const std::string& kind) {
    const ProcessResult result = Shell(
        "train -q --dry-run --model wide.json --steps 2 --batch 1 --accum 4 "
        "--nproc 2 --zero 2 --ddp-bucket-mb 1 --zero-accum " +
        kind + " --summary " + kind + ".json");
    EXPECT_EQ(result.exit_status, 0) << result.standard_error;
    return Json(kind + ".json").at("memory_bytes").at("gradients").get<int64_t>();
  };
  const int64_t kept = gradients("keep"), reduced = gradients("reduce");
  const int64_t layer = 4 * 12 * 256 * 256;  // fp32 bytes of most of its matrices
  EXPECT_GT(kept, 4 * layer) << "of the whole model";
  EXPECT_LT(reduced, kept / 2 + 2 * layer) << "of a shard, and of the segments of a bucket";
}

TEST_F(TrainMemoryTest, ThePartsOfTheMemorySumToTheMeasuredPeak) {
  WriteModel("wide.json", TinyLlamaOf(256, 8));
  for (const std::string run :
       {"--model tiny.json --batch 2 --out tiny", "--model wide.json --batch 16 --out wide"}) {
    const std::string name = run.substr(run.rfind(' ') + 1);
    const ProcessResult result =
        Shell("train --steps 3 --seq 128 --async-save on --summary " + name + "-summary.json " + run);
    ASSERT_EQ(result.exit_status, 0) << result.standard_error;
    EXPECT_THAT(result.standard_error, testing::HasSubstr("memory: "));
    const nlohmann::json memory = Metrics(name).back().at("memory_bytes");
    int64_t sum = 0;
    for (const char* part :
         {"params", "grads", "optimizer", "activations", "loader", "snapshot", "runtime", "heap"}) {
      EXPECT_GT(memory.at(part).get<int64_t>(), 0) << part;
      sum += memory.at(part).get<int64_t>();
    }
    const auto peak = memory.at("peak").get<double>();
    EXPECT_NEAR(static_cast<double>(sum), peak, 0.1 * peak) << name << memory;
    EXPECT_LE(static_cast<double>(sum), peak) << name << memory;  // the heap is told within it
    EXPECT_EQ(Json(name + "-summary.json").at("memory_bytes"), memory);
  }
}

TEST_F(TrainMemoryTest, ExplainTellsTheCopyThatARunWithAdaptersTakes) {
  const std::string train = "train -q --model tiny.json --lora 2 --steps 2 --seq 64 --batch 2 ";
  ASSERT_EQ(Shell(train + "--async-save on --out run").exit_status, 0);
  const auto copied = Metrics("run").back().at("memory_bytes").at("snapshot").get<uint64_t>();
  ASSERT_GT(copied, 0u);
  const ProcessResult told = Shell(train + "--explain --summary told.json");
  ASSERT_EQ(told.exit_status, 0) << told.standard_error;
  const nlohmann::json summary = Json("told.json");
  for (const nlohmann::json& row : summary.at("options")) {
    if (row.at("option") != "async-save") continue;
    EXPECT_THAT(row.at("reason").get<std::string>(),
                testing::HasSubstr("a copy of weights and moments, " + FormatBytes(copied)));
    return;
  }
  FAIL() << told.standard_output;
}

TEST_F(TrainMemoryTest, ARunThatSavesOnlyAtItsEndTakesNoCopyForIt) {
  for (const std::string every : {"0", "1"}) {
    const std::string run = "train --model tiny.json --steps 2 --seq 128 --save-every " + every;
    const ProcessResult result =
        Shell(run + " --out run-" + every + " && " + run + " --dry-run --summary plan.json > /dev/null");
    ASSERT_EQ(result.exit_status, 0) << result.standard_error;
    const auto held = Metrics("run-" + every).back().at("memory_bytes").at("snapshot").get<int64_t>();
    const auto planned = Json("plan.json").at("memory_bytes").at("snapshot").get<int64_t>();
    EXPECT_EQ(held > 0, every == "1") << held;
    EXPECT_EQ(planned, held);
  }
}

/// Layers whose activations are far above the weights.
class CappedTest : public TrainMemoryTest {
 protected:
  /// What a cap of `bytes` is as a share of the memory that is available now.
  std::string Fraction(double bytes) {
    std::istringstream words(
        Shell("grep MemAvailable /proc/meminfo; cat /sys/fs/cgroup/memory.max 2> /dev/null; "
              "grep '^anon ' /sys/fs/cgroup/memory.stat 2> /dev/null")
            .standard_output);
    std::string name, unit, limit, anon;
    double available = 0, used = 0;
    words >> name >> available >> unit;
    available *= 1024;
    if (words >> limit >> anon >> used && limit != "max")
      available = std::min(available, std::stod(limit) - used);
    return std::to_string(bytes / available);
  }
};

TEST_F(CappedTest, AnAllocationAboveTheCapIsStatus5AndNamesCapAndFlags) {
  WriteModel("wide.json", TinyLlamaOf(256, 8));
  const ProcessResult result = Shell(
      "train -q --model wide.json --steps 1 --batch 64 --seq 128 --async-save off --out run "
      "--mem-fraction " +
      Fraction(300e6));
  EXPECT_EQ(result.exit_status, 5) << result.standard_error;
  EXPECT_THAT(result.standard_error, testing::HasSubstr("under --mem-fraction 0."));
  EXPECT_THAT(result.standard_error, testing::HasSubstr("--auto-oom"));
  EXPECT_THAT(result.standard_error, testing::HasSubstr("raise --mem-fraction"));
}

TEST_F(CappedTest, OfTextsToEmbedItNamesWhatMakesTheirPassesSmaller) {
  WriteModel("wide.json", TinyLlamaOf(256, 8));
  const ProcessResult result = Shell(R"(
    for i in $(seq 64); do printf '{"query": "%d", "pos": ["%0110d"], "neg": ["%0111d"]}\n' $i $i $i; done |
      pretokenize -q --records contrastive - | pack -q --chunk 512 -o pairs/ || exit 9
    train -q --objective grit --data pairs --model wide.json --steps 1 --batch 64 --accum 1 --passage-max-len 128 \
      --async-save off --out run --mem-fraction )" +
                                     Fraction(300e6));
  EXPECT_EQ(result.exit_status, 5) << result.standard_error;
  for (const char* lever : {"samples of texts of up to 128 tokens", "--split-emb full",
                            "a lower --batch (raising --accum as much)", "--passage-max-len"}) {
    EXPECT_THAT(result.standard_error, testing::HasSubstr(lever));
  }
  EXPECT_THAT(result.standard_error, testing::Not(testing::HasSubstr("--seq")));
}

TEST_F(CappedTest, AutoOomGoesOnInSmallerMicroBatchesWithTheSameSamplesAStepAndSaysSo) {
  WriteModel("wide.json", TinyLlamaOf(256, 8));
  const ProcessResult result = Shell(
      "run() { train -q --model wide.json --steps 2 --seq 128 --async-save off \"$@\"; }\n"
      "run --batch 64 --auto-oom --out capped --mem-fraction " +
      Fraction(500e6) + " 2> log; echo $?");
  EXPECT_EQ(result.standard_output, "0\n") << ReadFile(folder_.path("log"));
  int64_t warnings = 0, accum = 0, batch = 0;
  for (const nlohmann::json& record : Metrics("capped")) {
    const std::string type = record.at("type");
    warnings += type == "warning" && record.at("message").get<std::string>().starts_with("out of memory");
    if (type != "step") continue;
    EXPECT_EQ(record.at("effective_batch"), 64);
    accum = record.at("accum");
    batch = 64 / accum;
  }
  EXPECT_GE(warnings, 1);
  EXPECT_GT(accum, 1);
  EXPECT_EQ(Json("capped/run.json").at("plan").at("batch"), batch) << "for who goes on from here";
  const std::string split = " --batch " + std::to_string(batch) + " --accum " + std::to_string(accum);
  const ProcessResult same = Shell("train -q --model wide.json --steps 2 --seq 128 --out same" + split +
                                   " && cmp same/latest/model.safetensors capped/latest/model.safetensors");
  EXPECT_EQ(same.exit_status, 0) << same.standard_output << same.standard_error;
}

TEST_F(TrainMemoryTest, AFractionOutOfRangeIsRefused) {
  for (const char* fraction : {"0", "1.5", "-1", "nan"}) {
    const ProcessResult result = Shell(std::string("train -q --steps 1 --mem-fraction ") + fraction);
    EXPECT_EQ(result.exit_status, 2) << fraction << result.standard_error;
  }
}

TEST_F(TrainMemoryTest, TheBatchThatWasFoundKeepsTheSizeOfTheStep) {
  const ProcessResult result = Shell("train --find-batch --batch 6 --accum 2 --steps 1 --seq 32 --out run");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_THAT(result.standard_error, testing::HasSubstr("12 samples a step"));
  EXPECT_THAT(result.standard_error, testing::HasSubstr("tokens/s"));
  for (const nlohmann::json& record : Metrics("run")) {
    if (record.at("type") == "step") {
      EXPECT_EQ(record.at("effective_batch"), 12);
    }
  }
}

TEST_F(TrainMemoryTest, TheBatchThatWasFoundIsAccumulatedToSixteenSamplesWhereNobodyChose) {
  const ProcessResult result =
      Shell("unset TRAINWRIGHT_BATCH TRAINWRIGHT_ACCUM; train --find-batch --steps 1 --seq 32 --out run");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  const nlohmann::json plan = Metrics("run").at(0).at("plan");
  const int64_t batch = plan.at("batch"), accum = plan.at("accum");
  EXPECT_GE(batch * accum, 16);
  EXPECT_LT(batch * (accum - 1), 16) << "no more than it takes";
  EXPECT_EQ(batch & (batch - 1), 0) << "a power of two";
  EXPECT_THAT(result.standard_error,
              testing::HasSubstr("--accum " + std::to_string(accum) + " makes a step of at least 16"));
}

TEST_F(TrainMemoryTest, RanksThatLookForABatchTrainWithOne) {
  const ProcessResult result = Shell(
      "train -q --nproc 2 --find-batch --batch 6 --accum 2 --steps 1 --seq 32 --dist-timeout 20 --out run");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  for (const nlohmann::json& record : Metrics("run")) {
    if (record.at("type") == "step") {
      EXPECT_EQ(record.at("effective_batch"), 24);
    }
  }
}

}  // namespace
}  // namespace trainwright::test
