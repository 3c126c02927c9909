// train --eval-split as processes: what is held out, for text, conversations and adapters; resume, early
// stop, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

class TrainSplitTest : public TrainProcessTest {
 protected:
  TrainSplitTest() : TrainProcessTest("TRAINWRIGHT_MODEL=tiny.json TRAINWRIGHT_BATCH=2") {}
  void SetUp() override {
    WriteModel("tiny.json");
    const ProcessResult made = Shell(R"(
      head -n 400 $DATA/tinyshakespeare.txt | pretokenize -q - | pack -q --chunk 256 -o lm/ &&
      for i in $(seq 200); do echo "{\"prompt\": \"$i + 1\", \"response\": \"$((i + 1))\"}"; done |
        pretokenize -q --format jsonl --records sft --template qa-space - | pack -q --chunk 64 -o sft/)");
    ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  }
  std::vector<nlohmann::json> Records(const std::string& run, const std::string& type) {
    std::vector<nlohmann::json> records = Metrics(run);
    std::erase_if(records, [&](const nlohmann::json& record) { return record.at("type") != type; });
    return records;
  }
};

TEST_F(TrainSplitTest, TextConversationsAndAdaptersAreEvaluatedOnWhatIsHeldOut) {
  const ProcessResult result = Shell(R"(
    set -e
    train -q --data lm --eval-split 0.2 --steps 12 --eval-every 4 --save-every 0 --out lm-run
    train -q --data sft --eval-split 20 --eval-split-seed 5 --steps 12 --eval-every 4 --save-every 0 --out sft-run
    unset TRAINWRIGHT_MODEL
    train -q --data lm --init lm-run --lora 2 --eval-split 0.2 --seed 9 --steps 12 --eval-every 4 --save-every 0 --out lora-run
    evaluate -q --batch 2 --checkpoint lm-run --data lm --eval-split 0.2 > lm.json
    evaluate -q --batch 2 --checkpoint sft-run --data sft --eval-split 20 --eval-split-seed 5 > sft.json
    evaluate -q --batch 2 --checkpoint lora-run --data lm --eval-split 0.2 > lora.json
    evaluate -q --batch 2 --checkpoint lm-run --data lm > all.json)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  for (const char* kind : {"lm", "sft", "lora"}) {
    SCOPED_TRACE(kind);
    const std::string run = std::string(kind) + "-run";
    const nlohmann::json begin = Records(run, "run_begin").at(0),
                         measured = Json(std::string(kind) + ".json");
    const std::vector<nlohmann::json> evaluations = Records(run, "eval");
    ASSERT_EQ(evaluations.size(), 4u);
    for (const nlohmann::json& evaluation : evaluations)
      EXPECT_EQ(evaluation.at("tokens"), begin.at("held_out_tokens"));
    EXPECT_EQ(measured.at("tokens"), begin.at("held_out_tokens"));
    EXPECT_NEAR(measured.at("loss_nats").get<double>(), evaluations.back().at("loss_nats").get<double>(),
                1e-5);
    const nlohmann::json plan =
        Json(run + "/latest/metadata.json").at("provenance").at("plan").at("eval_split");
    EXPECT_EQ(plan, begin.at("plan").at("eval_split"));
  }
  EXPECT_EQ(Records("sft-run", "run_begin").at(0).at("held_out_documents"), 20);
  // Another seed of the run, the same documents.
  EXPECT_EQ(Records("lora-run", "run_begin").at(0).at("held_out_tokens"), Json("lm.json").at("tokens"));
  EXPECT_GT(Json("all.json").at("tokens"), Json("lm.json").at("tokens"));
}

TEST_F(TrainSplitTest, TheCommandsThatARunPrintsMeasureAllThatItHeldOutAndNothingElse) {
  const ProcessResult result = Shell(R"sh(
    head -n 2000 $DATA/tinyshakespeare.txt | tail -n 1500 | pretokenize -q - | pack -q --chunk 256 -o more/ || exit
    train --data lm --data more --eval-split 40 --steps 4 --eval-every 0 --save-every 0 --out run 2> log || exit
    grep -o 'evaluate --checkpoint .*' log > told
    while read -r command; do eval "$command --batch 2 > $((n = ${n:-0} + 1)).json" 2>> warnings || exit; done < told
    wc -l < told; grep -c -e --eval-split: warnings)sh");
  EXPECT_EQ(result.standard_output, "2\n0\n") << result.standard_error;
  const nlohmann::json begin = Records("run", "run_begin").at(0);
  EXPECT_EQ(Json("1.json").at("tokens").get<int64_t>() + Json("2.json").at("tokens").get<int64_t>(),
            begin.at("held_out_tokens").get<int64_t>());
}

TEST_F(TrainSplitTest, DocumentsThatWereTrainedOnAreMeasuredAsHeldOutWithAWarningAlone) {
  const ProcessResult result = Shell(R"sh(
    train -q --data lm --eval-split 20 --steps 2 --eval-every 0 --save-every 0 --out run
    train -q --data lm --steps 2 --save-every 0 --out whole
    measure() { evaluate --batch 2 --data lm "$@" 2>&1 > /dev/null | grep -o 'warning: --eval-split: .*' || echo none; }
    measure --checkpoint run --eval-split 20
    measure --checkpoint run --eval-split 5
    measure --checkpoint run --eval-split 40
    measure --checkpoint run --eval-split 20 --eval-split-seed 1
    measure --checkpoint whole --eval-split 20
    measure --checkpoint whole --eval-split 0.1)sh");
  const std::string trained =
      "warning: --eval-split: documents that [^\n]* was trained on are among these[^\n]*\n";
  EXPECT_THAT(
      result.standard_output,
      testing::MatchesRegex("none\nnone\n" + trained + trained +
                            "warning: --eval-split: [^\n]* does not say what a run held out[^\n]*\nnone\n"))
      << result.standard_error;
}

TEST_F(TrainSplitTest, AModelMadeOfCheckpointsIsMeasuredOnWhatTheirRunHeldOut) {
  const ProcessResult result = Shell(R"sh(
    train -q --data lm --eval-split 20 --steps 2 --save-every 1 --keep 0 --out mean-run || exit
    unset TRAINWRIGHT_MODEL TRAINWRIGHT_BATCH
    train -q --batch 2 --data sft --init mean-run --lora 2 --eval-split 30 --steps 2 --save-every 0 --out merged-run || exit
    train -q --average mean-run/checkpoints/step-00000001 --average mean-run --out mean > /dev/null || exit
    train -q --merge merged-run --out merged > /dev/null || exit
    evaluate --batch 2 --checkpoint mean --data lm --eval-split 20 > mean.json 2> warnings || exit
    evaluate --batch 2 --checkpoint merged --data sft --eval-split 30 > merged.json 2>> warnings || exit
    grep -c -e --eval-split: warnings)sh");
  EXPECT_EQ(result.standard_output, "0\n") << result.standard_error;
  for (const std::string made : {"mean", "merged"}) {
    EXPECT_EQ(Json(made + ".json").at("tokens"),
              Records(made + "-run", "run_begin").at(0).at("held_out_tokens"))
        << made;
  }
}

TEST_F(TrainSplitTest, AllAnswersToAQuestionAreHeldOutTogether) {
  const ProcessResult result = Shell(R"sh(
    for i in $(seq 60); do for j in 1 2 3; do
      echo "{\"prompt\": \"$i + 1\", \"response\": \"$((i + 1)), in $j steps\"}"
    done; done | pretokenize -q --format jsonl --records sft --template qa-space - | pack -q --chunk 64 -o answers/
    train -q --data answers --eval-split 10 --steps 2 --eval-every 0 --save-every 0 --out run
    evaluate -q --checkpoint run --data answers --eval-split 10)sh");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(Records("run", "run_begin").at(0).at("held_out_documents"), 12) << "four questions";
  EXPECT_EQ(nlohmann::json::parse(result.standard_output).at("docs"), 12);
}

TEST_F(TrainSplitTest, WhatIsHeldOutIsNotToldAsOutsideEverySample) {
  const ProcessResult result = Shell(R"sh(
    train --data lm --eval-split 0.2 --epochs 1 --eval-every 0 --save-every 0 --out run)sh");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_THAT(result.standard_error, testing::Not(testing::HasSubstr("are in no sample")));
}

TEST_F(TrainSplitTest, AnEpochReadsTheOtherTokens) {
  const ProcessResult result = Shell(R"(
    train -q --data lm --eval-split 0.3 --epochs 3 --drop-last --batch 1 --eval-every 0 --save-every 0 --out run)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  const nlohmann::json begin = Records("run", "run_begin").at(0), end = Records("run", "run_end").at(0);
  EXPECT_EQ(end.at("tokens_seen").get<int64_t>(),
            3 * (begin.at("data_tokens").get<int64_t>() - begin.at("held_out_tokens").get<int64_t>()));
}

TEST_F(TrainSplitTest, TheEndRecordsTheLossesAndTheFilesThatWereProcessed) {
  const ProcessResult result = Shell(R"(
    head -n 4000 $DATA/tinyshakespeare.txt | pretokenize -q - | pack -q --chunk 64 --shard-size 10000 -o files/ &&
      train -q --data files --eval-data lm --eval-tokens 300 --eval-every 5 --epochs 1.5 --batch 8 --save-every 7 --keep 0 \
        --summary summary.json --out run)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  const auto losses = [&](const std::string& type) {
    std::vector<double> values;
    for (const nlohmann::json& record : Records("run", type)) values.push_back(record.at("loss_nats"));
    return values;
  };
  const nlohmann::json end = Records("run", "run_end").at(0);
  for (const nlohmann::json& told : {end, Json("summary.json")}) {
    for (const auto& [type, name] : {std::pair("step", "loss_nats"), {"eval", "eval_loss_nats"}}) {
      const std::vector<double> values = losses(type);
      ASSERT_GT(values.size(), 3u);
      EXPECT_EQ(told.at(std::string("first_") + name), values.front());
      EXPECT_EQ(told.at(std::string("last_") + name), values.back());
      EXPECT_EQ(told.at(std::string("best_") + name), *std::min_element(values.begin(), values.end()));
    }
  }
  const int64_t files = Json("files/MANIFEST.json").at("shards").size();
  ASSERT_GT(files, 2);
  for (const nlohmann::json& saved : Records("run", "checkpoint")) {
    const nlohmann::json metadata = Json("run/" + saved.at("path").get<std::string>() + "/metadata.json");
    const nlohmann::json& progress = metadata.at("training_progress");
    EXPECT_EQ(progress.at("files"), files);
    const double epochs = metadata.at("epoch");
    EXPECT_EQ(progress.at("files_processed"), std::floor(epochs * static_cast<double>(files)));
  }
  EXPECT_GT(Json("run/latest/metadata.json").at("training_progress").at("files_processed"), files);
}

TEST_F(TrainSplitTest, AResumedRunHoldsOutTheSameAndStopsEarlyWhereTheWholeOneDoes) {
  const ProcessResult result = Shell(R"(
    train="train -q --data lm --steps 60 --lr 1e-30 --weight-decay 0 --eval-every 3 --early-stop 4 --save-every 3 --keep 2"
    $train --eval-split 0.2 --out whole || exit
    $train --eval-split 0.2 --max-minutes 0.00001 --out cut || exit
    $train --resume --out cut || exit
    for file in model.safetensors trainwright_state.safetensors; do cmp whole/latest/$file cut/latest/$file || exit; done
    readlink whole/latest)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "checkpoints/step-00000012\n") << "four evaluations that are no better";
  EXPECT_EQ(Records("cut", "run_begin").size(), 2u);
  const std::pair<const char*, int> refused[] = {
      {"--eval-split 0.3", 2}, {"--eval-split 0.2 --eval-split-seed 4", 2}, {"--eval-data lm", 2}};
  for (const auto& [flags, status] : refused) {
    const ProcessResult other = Shell(std::string("train --resume --out cut --data lm ") + flags);
    EXPECT_EQ(other.exit_status, status) << flags << other.standard_error;
    EXPECT_THAT(other.standard_error, testing::HasSubstr("--eval-")) << flags;
  }
}

TEST_F(TrainSplitTest, ASeedForARunThatHoldsNothingOutIsRefused) {
  const ProcessResult result = Shell(R"(
    train -q --data lm --steps 2 --out run || exit 9
    train --resume --out run --eval-split-seed 3; echo $?
    train --resume --out new --data lm --steps 2 --eval-split-seed 3; echo $?)");
  EXPECT_EQ(result.standard_output, "2\n2\n") << result.standard_error;
  EXPECT_THAT(result.standard_error, testing::HasSubstr("which holds nothing out"));
}

TEST_F(TrainSplitTest, ASideWithNothingInItIsRefusedBeforeAnythingIsWritten) {
  const std::pair<const char*, const char*> cases[] = {
      {"--eval-split 0", "holds nothing out"},   {"--eval-split 1.5", "no share"},
      {"--eval-split 100000", "hold out fewer"}, {"--eval-split 0.0000001", "another share"},
      {"--eval-split-seed 1", "--eval-split"},   {"--eval-split 0.2 --eval-data lm", "--eval-data"}};
  for (const auto& [flags, expected] : cases) {
    const ProcessResult result = Shell(std::string("train --data lm --steps 1 --out run ") + flags);
    EXPECT_EQ(result.exit_status, 2) << flags << result.standard_error;
    EXPECT_THAT(result.standard_error, testing::HasSubstr(expected)) << flags;
    EXPECT_FALSE(std::filesystem::exists(folder_.path("run/metrics.jsonl"))) << flags;
  }
}

}  // namespace
}  // namespace trainwright::test
