// From conversations to a tuned model, as processes: the objective, its flags, evaluation over answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

class TrainSftTest : public TrainProcessTest {
 protected:
  TrainSftTest() : TrainProcessTest("TRAINWRIGHT_MODEL=tiny.json TRAINWRIGHT_BATCH=4") {}
  void SetUp() override {
    WriteModel("tiny.json");
    // The answer to a letter is the letter twice; the words before it are noise that no model can learn.
    const ProcessResult made = Shell(R"(
      python3 -c '
import json, random
random.seed(5)
for _ in range(400):
    letter = random.choice("abcdefgh")
    noise = "".join(random.choice("uvwxyz") for _ in range(8))
    print(json.dumps({"prompt": noise + letter, "response": letter * 2}))' > in.jsonl
      pretokenize -q --records sft --template qa-space in.jsonl | pack -q --chunk 64 -o sft/ &&
      pretokenize -q --key prompt in.jsonl | pack -q --chunk 64 -o lm/)");
    ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  }
};

TEST_F(TrainSftTest, OnlyAnswersAreLearnedAndOnlyAnswersAreMeasured) {
  const ProcessResult result = Shell(R"(
    train -q --data sft --out run --steps 120 --lr 0.01 --eval-data sft --eval-every 0 --save-every 0 --summary run.json &&
    evaluate --checkpoint run --data sft > answers.json &&
    evaluate --checkpoint run --data sft --loss-on all > all.json &&
    evaluate --checkpoint run --data lm > prompts.json &&
    printf '{"prompt": "uvwxyzuvc "}\n' | generate --checkpoint run --max-tokens 5)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  const nlohmann::json answers = Json("answers.json"), all = Json("all.json"), prompts = Json("prompts.json");
  EXPECT_EQ(answers.at("loss_on"), "assistant");
  EXPECT_EQ(all.at("loss_on"), "all");
  EXPECT_EQ(answers.at("labels"), 1200) << "two letters and the end of each of 400 answers";
  EXPECT_EQ(answers.at("source_bytes"), 800);
  EXPECT_EQ(all.at("labels"), 400 * 12)
      << "nine letters, a space, two letters and the end, but for the first";
  EXPECT_EQ(all.at("tokens"), answers.at("tokens"));
  EXPECT_LT(answers.at("loss_nats"), 0.2) << "the answers were learned";
  EXPECT_GT(prompts.at("loss_nats"), 2.5) << "and the prompts were not";
  EXPECT_EQ(nlohmann::json::parse(result.standard_output).at("text"), "cc")
      << "the format of training is that of inference";
  // What training says of its evaluation is what evaluate says.
  EXPECT_NEAR(Json("run.json").at("last_eval_loss_nats"), answers.at("loss_nats"), 1e-5);
}

TEST_F(TrainSftTest, TheObjectiveFollowsTheDataAndContradictionsAreRefused) {
  const ProcessResult result = Shell(R"(
    t="train -q --steps 2 --seq 32 --save-every 1"
    $t --data lm --objective sft --out a; echo $?
    $t --data lm --loss-on assistant --out b; echo $?
    $t --data sft --objective lm --loss-on assistant --out c; echo $?
    train --steps 2 --data sft --objective lm --out d 2> err; echo $?; grep -c 'warning.*prompts' err
    $t --data sft --out e && $t --data sft --out e --resume --objective lm; echo $?
    $t --data sft --out e --resume --loss-on all; echo $?
    $t --data sft --out e --resume --objective sft --loss-on assistant; echo $?
    train --data sft --explain | grep -E '^ *(--)?objective')");
  EXPECT_THAT(result.standard_output, testing::StartsWith("3\n2\n2\n0\n1\n2\n2\n0\n"))
      << result.standard_error;
  EXPECT_THAT(result.standard_output, testing::HasSubstr("sft records"));
}

TEST_F(TrainSftTest, LossOnAllIsTheObjectiveLm) {
  const ProcessResult result = Shell(R"(
    t="train -q --data sft --steps 3 --save-every 0"
    $t --objective sft --loss-on all --out a && $t --objective lm --out b && $t --out c &&
    cmp a/latest/model.safetensors b/latest/model.safetensors && ! cmp -s a/latest/model.safetensors c/latest/model.safetensors)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
}

TEST_F(TrainSftTest, AKilledRunResumesToTheSameWeights) {
  const ProcessResult result = Shell(R"(
    t="train -q --data sft --steps 60 --save-every 5 --seed 3"
    $t --out whole || exit 1
    for i in 1 2 3 4 5 6; do
      timeout -s KILL 0.8 $t --out cut $([ -e cut/latest ] && echo --resume) && break
    done
    $t --out cut --resume || $t --out cut || exit 2
    cmp whole/latest/model.safetensors cut/latest/model.safetensors)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
}

TEST_F(TrainSftTest, AnswersAreScoredWithoutAModel) {
  WriteFile(folder_.path("samples.jsonl"),
            "{\"prompt\":\"2+2? \",\"text\":\"<answer>4</answer>\",\"sample\":0}\n");
  WriteFile(folder_.path("gold.jsonl"),
            "{\"prompt\":\"2+2?\",\"gold\":4}\n{\"prompt\":\"1+1?\",\"gold\":2}\n");
  const ProcessResult result = Shell(R"(
    e="evaluate -q --metric answers --gold gold.jsonl"
    $e --samples samples.jsonl; echo $?
    $e --samples - < samples.jsonl > piped.json; echo $?
    $e --samples samples.jsonl --min-accuracy 0.6 > /dev/null; echo $?
    $e --samples gold.jsonl > /dev/null; echo $?
    $e > /dev/null; echo $?
    evaluate -q --metric answers --samples samples.jsonl --gold absent > /dev/null; echo $?
    evaluate -q --data sft > /dev/null; echo $?
    $e --samples samples.jsonl > /dev/full; echo $?)");
  EXPECT_THAT(result.standard_output, testing::EndsWith("\n0\n0\n1\n3\n2\n4\n2\n4\n"))
      << result.standard_output;
  const nlohmann::json json = Json("piped.json");
  EXPECT_EQ(json.at("metric"), "answers");
  EXPECT_EQ(json.at("n"), 2);
  EXPECT_EQ(json.at("accuracy"), 0.5);
  EXPECT_EQ(json.at("missing"), 1);
}

}  // namespace
}  // namespace trainwright::test
