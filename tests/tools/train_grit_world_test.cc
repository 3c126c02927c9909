// What `train --dry-run --world` tells of a run that embeds: its texts, not only what is predicted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kQueryTokens = 16, kPassageTokens = 40, kPassagesOfQuery = 3, kSamplesOfRank = 8,
                  kWidth = 32;

class TrainGritWorldTest : public TrainProcessTest {
 protected:
  void SetUp() override {
    WriteModel("tiny.json", TinyLlamaOf(kWidth, 2));
    std::string records;
    for (int i = 0; i < 300; ++i) {
      const std::string text = std::to_string(i);
      records += nlohmann::json{{"query", "what is " + text},
                                {"pos", {"it is " + text}},
                                {"neg", {"it is not " + text, "nor is it " + text}}}
                     .dump() +
                 "\n";
    }
    WriteFile(folder_.path("pairs.jsonl"), records);
    const ProcessResult made =
        Shell("pretokenize -q --records contrastive pairs.jsonl | pack -q --chunk 256 -o pairs/");
    ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  }
  /// The worlds that are told of runs with these options.
  nlohmann::json Told(const std::string& options) {
    told_ = Shell(
        "train -q --dry-run --objective grit --data pairs --model tiny.json --query-max-len 16 "
        "--passage-max-len 40 --group-size 3 --batch 2 --accum 4 --steps 2 --bandwidth 1GB "
        "--device-tflops 1 --summary told.json " +
        options);
    EXPECT_NE(told_.exit_status, 2) << told_.standard_error;
    return Json("told.json").at("world").at("worlds");
  }
  static nlohmann::json Plain(const nlohmann::json& worlds, size_t index) {
    return worlds.at(index).at("sharding").at(0);
  }
  static int64_t Number(const nlohmann::json& row, const char* part, const char* name) {
    return row.at(part).at(name).get<int64_t>();
  }

  ProcessResult told_;
};

TEST_F(TrainGritWorldTest, CountsTheTokensOfQueriesAndPassages) {
  const nlohmann::json worlds = Told("--world 1,4");
  constexpr int64_t kTokensOfRank = kSamplesOfRank * (kQueryTokens + kPassagesOfQuery * kPassageTokens);
  for (const size_t index : {size_t{0}, size_t{1}}) {
    const nlohmann::json row = Plain(worlds, index);
    const double tokens = row.at("tokens_per_s").get<double>() * row.at("step_time_s").get<double>();
    const auto ranks = worlds.at(index).at("ranks").get<double>();
    EXPECT_NEAR(tokens, ranks * static_cast<double>(kTokensOfRank), 1e-6 * tokens);
  }
  EXPECT_THAT(told_.standard_output, HasSubstr("136 tokens a sample"));
}

TEST_F(TrainGritWorldTest, CountsTheFirstPassOfAStepOfSeveralMicroBatches) {
  const auto seconds = [&](const std::string& options) {
    return Plain(Told("--world 1 " + options), 0).at("step_time_s").get<double>();
  };
  // Forward and backward cost three forward passes; three of four micro-batches take one more.
  const double of_both = seconds(""), without = seconds("--negatives micro-batch");
  EXPECT_NEAR(of_both / without, 1 + 3.0 / 4 / 3, 0.02);
}

TEST_F(TrainGritWorldTest, CountsTheVectorsThatRanksGiveEachOther) {
  const nlohmann::json narrow = Told("--world 1,2,4"), wide = Told("--world 1,2,4 --projection 96");
  constexpr int64_t kTextsOfRank = kSamplesOfRank * (1 + kPassagesOfQuery), kFloatBytes = 4;
  EXPECT_EQ(Number(Plain(narrow, 0), "gathered", "sent_bytes"), 0);
  const auto sent = [](const nlohmann::json& worlds) {
    return Number(Plain(worlds, 2), "gathered", "sent_bytes");
  };
  EXPECT_GE(sent(narrow), 3 * kTextsOfRank * kWidth * kFloatBytes);
  EXPECT_EQ(sent(wide) - sent(narrow), 3 * kTextsOfRank * (96 - kWidth) * kFloatBytes);
  const auto held = [&](size_t index) {
    return Number(Plain(narrow, index), "memory_bytes", "representations");
  };
  EXPECT_GT(held(0), 0);
  EXPECT_GE(held(2) - held(1), 2 * kTextsOfRank * kWidth * kFloatBytes) << "of two ranks more";
  EXPECT_EQ(Number(Plain(Told("--world 4 --negatives rank"), 0), "gathered", "sent_bytes"), 0);
}

TEST_F(TrainGritWorldTest, MorePassagesOfAQueryTakeMoreMemory) {
  const auto activations = [&](const std::string& options) {
    return Number(Plain(Told("--world 2 " + options), 0), "memory_bytes", "activations");
  };
  EXPECT_GT(2 * activations("--group-size 8"), 3 * activations("--group-size 3"));
}

TEST_F(TrainGritWorldTest, AdvisesSmallerMicroBatchesWhereTheirPassesAreTooMuch) {
  const auto counted = [&](const std::string& batch) {
    const std::string options = "--world 2 --tile-mb 1 --checkpoint-activations full " + batch;
    return Number(Plain(Told(options + " --device-memory 80GiB"), 0), "memory_bytes", "counted");
  };
  const int64_t large = counted("--batch 64"), least = counted("--batch 1 --accum 256");
  ASSERT_GT(large, least);
  Told("--world 2 --tile-mb 1 --checkpoint-activations full --batch 64 --device-memory " +
       std::to_string((large + least) / 2));
  EXPECT_EQ(told_.exit_status, 1) << told_.standard_output;
  EXPECT_THAT(told_.standard_output, HasSubstr("Nearest: --batch 1 --accum 256."));
}

}  // namespace
}  // namespace trainwright::test
