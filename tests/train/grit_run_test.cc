// Whole runs of GRIT through the engine's entry: two sets of records and one of talks, of which adapters
// learn both to embed and to generate.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/objective/grit_data.h"
#include "lib/objective/objective_registry.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/run/metrics_log.h"
#include "lib/spec/objective_names.h"
#include "lib/train/train_job.h"
#include "lib/train/train_state.h"
#include "tests/model/families.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

constexpr int64_t kGritRunSteps = 6;
constexpr int64_t kGritRunSamples = 4;  ///< of a step
constexpr char kGritRunMiddle[] = "00000003", kGritRunEnd[] = "00000006";

/// Records whose texts are of unlike lengths, with one or two positives and two negatives.
std::string GritRunRecords(int count, const std::string& topic) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    const auto text = [&](int number) {
      return topic + " " + std::to_string(number) + std::string(static_cast<size_t>(number % 9), '!');
    };
    nlohmann::json record;
    record["query"] = nlohmann::json::array({"Find", "what is " + text(i)});
    record["pos"] = nlohmann::json::array({"it is " + text(i)});
    record["neg"] = nlohmann::json::array({"it is " + text(i + 1), "it is " + text(i + 5)});
    if (i % 2 == 0) record["pos"].push_back("that is " + text(i));
    lines += record.dump() + "\n";
  }
  return lines;
}

std::string GritRunTalks(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    nlohmann::json talk;
    talk["text"] = nlohmann::json::array({"say " + number, "here is " + number});
    lines += talk.dump() + "\n";
  }
  return lines;
}

/// An epoch has four steps: two of the larger set, one of the other, and one of what is left of both.
class GritRunTest : public testing::Test {
 protected:
  GritRunTest() {
    MakeShards("pairs", GritRunRecords(10, "red"), "contrastive");
    MakeShards("others", GritRunRecords(7, "blue"), "contrastive");
    MakeShards("talks", GritRunTalks(9), "sft --template grit");
    settings_.model = folder_.path("model.json");
    test::WriteFile(settings_.model,
                    R"({"model_type":"llama","vocab_size":258,"hidden_size":16,"num_hidden_layers":2,)"
                    R"("intermediate_size":32,"num_attention_heads":2,"max_position_embeddings":64})");
    settings_.data = {folder_.path("pairs"), folder_.path("others"), folder_.path("talks")};
    settings_.objective = kGritObjective;
    settings_.objective_options = {"mode=unified", "temperature=0.1", "query_max_len=32",
                                   "passage_max_len=48"};
    settings_.batch = 2;
    settings_.accum = kGritRunSamples / 2;
    settings_.lr = 1e-2;
    TrainAdapters();
  }

  void MakeShards(const std::string& name, const std::string& lines, const std::string& records) const {
    test::WriteFile(folder_.path("in.jsonl"), lines);
    const test::ProcessResult made =
        test::RunShell("cd '" + folder_.path() + "' && pretokenize -q --records " + records +
                       " in.jsonl | pack -q --chunk 512 -o " + name);
    EXPECT_EQ(made.exit_status, 0) << made.standard_error;
  }
  void Train() const {
    nlohmann::ordered_json summary;
    const TrainJobContext context = {.families = test::Families(),
                                     .progress = ProgressMode::kNever,
                                     .optimizers = BuiltInOptimizers(),
                                     .objectives = BuiltInObjectives()};
    EXPECT_EQ(RunTraining(settings_, context, &summary), 0);
  }
  /// Has the settings train adapters, with dropout, of what a first run makes.
  void TrainAdapters() {
    settings_.out = folder_.path("base");
    settings_.steps = 1;
    Train();
    settings_.model.clear();
    settings_.init = settings_.out;
    settings_.out = folder_.path("run");
    settings_.lora = 2;
    settings_.lora_dropout = 0.3;
    settings_.steps = kGritRunSteps;
    settings_.save_every = "3";
  }
  std::string Checkpoint(const std::string& step) const {
    return settings_.out + "/checkpoints/step-" + step;
  }
  std::string FileOfEnd(const std::string& name) const {
    return test::ReadFile(Checkpoint(kGritRunEnd) + "/" + name);
  }
  /// Since the run began, from both sets.
  int64_t RecordsTakenAt(const std::string& step) const {
    const LoaderStates loaders =
        ReadTrainState(Checkpoint(step) + "/trainwright_state.safetensors").trainer.loaders;
    EXPECT_EQ(loaders.size(), 3u);
    return static_cast<int64_t>(loaders.at(LoaderOfSet(0)).cursor.taken +
                                loaders.at(LoaderOfSet(1)).cursor.taken);
  }
  std::vector<nlohmann::ordered_json> Steps() const {
    std::vector<nlohmann::ordered_json> steps;
    ForEachMetricsRecord(settings_.out + "/metrics.jsonl", [&](const nlohmann::ordered_json& record) {
      if (record.at("type") == "step") steps.push_back(record);
    });
    return steps;
  }
  /// Leaves the run as one that was stopped behind its third step, to go on with nothing given but the folder
  /// and the data.
  void ForgetTheEndOfRun() {
    std::filesystem::remove_all(Checkpoint(kGritRunEnd));
    TrainSettings resumed;
    resumed.resume = true;
    resumed.data = settings_.data;
    resumed.out = settings_.out;
    resumed.save_every = settings_.save_every;
    settings_ = resumed;
  }

  test::TemporaryFolder folder_;
  TrainSettings settings_;
};

TEST_F(GritRunTest, StoppedInAnEpochAndResumedItEndsInTheSameBits) {
  Train();
  EXPECT_EQ(RecordsTakenAt(kGritRunMiddle), 3 * kGritRunSamples) << "three of the epoch's four steps";
  EXPECT_EQ(RecordsTakenAt(kGritRunEnd), 6 * kGritRunSamples);
  const std::string weights = FileOfEnd("adapter_model.safetensors");
  const std::string state = FileOfEnd("trainwright_state.safetensors");
  const std::vector<nlohmann::ordered_json> steps = Steps();
  ForgetTheEndOfRun();
  Train();
  EXPECT_EQ(FileOfEnd("adapter_model.safetensors"), weights);
  EXPECT_EQ(FileOfEnd("trainwright_state.safetensors"), state);
  const std::vector<nlohmann::ordered_json> again = Steps();
  ASSERT_EQ(again.size(), steps.size());
  for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(again[i].at("loss_terms"), steps[i].at("loss_terms"));
}

TEST_F(GritRunTest, ResumedInOtherMicroBatchesItTakesTheSameStepsWithinRounding) {
  Train();
  const std::vector<nlohmann::ordered_json> steps = Steps();
  ForgetTheEndOfRun();
  settings_.batch = 1;
  settings_.accum = kGritRunSamples;
  Train();
  const std::vector<nlohmann::ordered_json> again = Steps();
  ASSERT_EQ(again.size(), steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(again[i].at("tokens"), steps[i].at("tokens"));
    const auto loss_nats = steps[i].at("loss_nats").get<double>();
    EXPECT_NEAR(again[i].at("loss_nats").get<double>(), loss_nats, 1e-3 * loss_nats) << i;
  }
}

TEST_F(GritRunTest, AdaptersLearnBesideWeightsInFourBits) {
  Train();
  const nlohmann::ordered_json plain = Steps().front();
  settings_.quant = "nf4";
  settings_.out = folder_.path("nf4");
  Train();
  const std::vector<nlohmann::ordered_json> steps = Steps();
  ASSERT_EQ(steps.size(), static_cast<size_t>(kGritRunSteps));
  // The same texts, adapters that add nothing yet, and weights that differ by what 4 bits leave out.
  for (const char* term : {"loss_emb_nats", "loss_gen_nats"}) {
    const auto in_four_bits = steps.front().at("loss_terms").at(term).get<double>();
    const auto loss_nats = plain.at("loss_terms").at(term).get<double>();
    EXPECT_NE(in_four_bits, loss_nats) << term;
    EXPECT_NEAR(in_four_bits, loss_nats, 0.3 * loss_nats) << term;
  }
  for (const nlohmann::ordered_json& step : steps) EXPECT_GT(step.at("grad_norm").get<double>(), 0);
  EXPECT_NE(FileOfEnd("adapter_model.safetensors"),
            test::ReadFile(Checkpoint(kGritRunMiddle) + "/adapter_model.safetensors"));
}

TEST_F(GritRunTest, EveryStepTellsItsTextsAndWhichSetsItsTokensComeFrom) {
  Train();
  const std::vector<nlohmann::ordered_json> steps = Steps();
  ASSERT_EQ(steps.size(), static_cast<size_t>(kGritRunSteps));
  for (const nlohmann::ordered_json& step : steps) {
    EXPECT_EQ(step.at("queries"), kGritRunSamples);
    EXPECT_EQ(step.at("passages"), 2 * kGritRunSamples) << "a positive and a negative of each record";
    EXPECT_EQ(step.at("generative_rows"), kGritRunSamples);
    const auto of_sets = step.at("source_tokens").get<std::vector<int64_t>>();
    ASSERT_EQ(of_sets.size(), 3u);
    EXPECT_EQ(of_sets[0] + of_sets[1] + of_sets[2], step.at("tokens").get<int64_t>());
    EXPECT_GT(of_sets[2], 0);
    const auto& terms = step.at("loss_terms");
    EXPECT_EQ(step.at("loss_nats").get<double>(),
              terms.at("loss_emb_nats").get<double>() + terms.at("loss_gen_nats").get<double>());
  }
}

}  // namespace
}  // namespace trainwright
