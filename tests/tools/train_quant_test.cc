// generate --quant and evaluate --quant as processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

using ::testing::HasSubstr;

class TrainQuantTest : public TrainProcessTest {
 protected:
  TrainQuantTest() : TrainProcessTest("TRAINWRIGHT_MODEL=tiny.json TRAINWRIGHT_BATCH=2") {}
  void SetUp() override {
    WriteModel("tiny.json");
    const ProcessResult made = Shell(R"(
      set -e
      head -n 400 $DATA/tinyshakespeare.txt > text.txt
      pretokenize -q text.txt | pack -q --chunk 256 -o lm/
      train -q --data lm --steps 20 --save-every 0 --out run)");
    ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  }
};

TEST_F(TrainQuantTest, EveryFormatIsMeasuredAndGeneratesTheSameTwice) {
  const ProcessResult result = Shell(R"(
    set -e
    unset TRAINWRIGHT_MODEL TRAINWRIGHT_BATCH
    for quant in none int8 nf4; do
      evaluate -q --checkpoint run --data text.txt --quant $quant > $quant.json
      for i in 1 2; do
        generate -q --checkpoint run --prompt 'To be' --max-tokens 20 --quant $quant --threads $i --summary $quant-summary.json > $quant-$i.jsonl
      done
    done)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  const double loss = Json("none.json").at("loss_nats").get<double>();
  for (const std::string quant : {"none", "int8", "nf4"}) {
    SCOPED_TRACE(quant);
    EXPECT_EQ(Json(quant + ".json").at("quant"), quant);
    EXPECT_EQ(Json(quant + "-summary.json").at("quant"), quant);
    const double change = std::abs(Json(quant + ".json").at("loss_nats").get<double>() - loss);
    EXPECT_LE(change, quant == "none" ? 0 : quant == "int8" ? 0.01 : 0.2);
    EXPECT_EQ(change == 0, quant == "none");
    EXPECT_EQ(ReadFile(folder_.path(quant + "-1.jsonl")), ReadFile(folder_.path(quant + "-2.jsonl")));
  }
}

TEST_F(TrainQuantTest, TheBaseOfAnAdapterIsQuantised) {
  const ProcessResult result = Shell(R"(
    set -e
    unset TRAINWRIGHT_MODEL
    train -q --data lm --init run --lora 4 --lr 0.01 --steps 10 --save-every 0 --out adapted
    evaluate -q --checkpoint run --data text.txt > base.json
    for quant in none int8 nf4; do
      evaluate -q --checkpoint adapted --data text.txt --quant $quant > $quant.json
    done)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  const auto loss = [&](const std::string& name) {
    return Json(name + ".json").at("loss_nats").get<double>();
  };
  for (const std::string quant : {"int8", "nf4"}) {
    SCOPED_TRACE(quant);
    EXPECT_NE(loss(quant), loss("none"));
    EXPECT_LT(std::abs(loss(quant) - loss("none")), 0.2 * std::abs(loss("base") - loss("none")));
    EXPECT_TRUE(Json(quant + ".json").at("adapter").is_object());
  }
}

TEST_F(TrainQuantTest, WhatMakesNoSenseIsRefusedWithStatusTwo) {
  const auto refused = [&](const std::string& command, const std::string& text) {
    const ProcessResult result = Shell("unset TRAINWRIGHT_MODEL TRAINWRIGHT_BATCH; " + command);
    EXPECT_EQ(result.exit_status, 2) << command << result.standard_error;
    EXPECT_THAT(result.standard_error, HasSubstr("--quant")) << command;
    EXPECT_THAT(result.standard_error, HasSubstr(text)) << command;
  };
  refused("generate --checkpoint run --prompt x --quant int3", "int3");
  refused("evaluate --checkpoint run --data text.txt --quant fp4", "fp4");
  refused("generate --checkpoint run --input text.txt --context-cache . --quant int8", "--context-cache");
  refused("evaluate --metric sts --checkpoint run --data text.txt --quant int8", "--metric sts");
  refused("train --data lm --lora 2 --init run --steps 1 --quant int8 --out other", "int8");
}

}  // namespace
}  // namespace trainwright::test
