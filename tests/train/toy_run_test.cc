// Whole runs of a family that only the tests know, through the entries of the engines: what their mains fill
// in is all that differs.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "lib/eval/evaluate_job.h"
#include "lib/eval/generate_job.h"
#include "lib/io/byte_sink.h"
#include "lib/objective/objective_registry.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/train/train_job.h"
#include "tests/model/toy_family.h"
#include "tests/spec/toy_recurrent_family.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSteps = 6;

/// Of ToyBody, whose layers hold W [D, D] and u [D].
class ToyRunFamily final : public test::ToyRecurrentFamily {
 public:
  int64_t CountParameters(const ModelConfig& config) const override {
    const int64_t width = config.hidden_size;
    return config.num_layers * (width * width + width) + width +
           (config.tie_embeddings ? 1 : 2) * config.vocab_size * width;
  }
  StepFlops CountStepFlops(const ModelConfig& config, const FineTuning& /*tuning*/) const override {
    const auto width = static_cast<double>(config.hidden_size);
    return {.per_token = 3 * 2 * static_cast<double>(config.num_layers) * width * width,
            .per_label = 3 * 2 * width * static_cast<double>(config.vocab_size)};
  }
};

const ModelFamilies& WithToyFamily() {
  static const ToyRunFamily description;
  static const ModelFamilies families({{&description, test::MakeToyBody}});
  return families;
}

/// Shards and a config.json of the toy family in a folder of the test's own.
class ToyRunTest : public testing::Test {
 protected:
  ToyRunTest() {
    std::string text;
    for (int line = 0; line < 40; ++line) text += "abcdefgh " + std::to_string(line) + " abcdefgh\n";
    test::WriteFile(folder_.path("text.txt"), text);
    const test::ProcessResult made = test::RunShell(
        "cd '" + folder_.path() + "' && pretokenize -q text.txt | pack -q --chunk 64 -o shards");
    EXPECT_EQ(made.exit_status, 0) << made.standard_error;
    test::WriteFile(
        folder_.path("toy.json"),
        R"({"model_type":"toy-recurrent","vocab_size":258,"hidden_size":16,"num_hidden_layers":2,)"
        R"("trained_length":64,"state_size":24,"tie_word_embeddings":true})");
    settings_.data = {folder_.path("shards")};
    settings_.model = folder_.path("toy.json");
    settings_.out = folder_.path("run");
    settings_.steps = kSteps;
    settings_.batch = 2;
    settings_.seq = 32;
    settings_.lr = 1e-2;
    settings_.save_every = "3";
    settings_.threads = 1;
    settings_.device = "cpu";
  }

  nlohmann::ordered_json Train() const {
    nlohmann::ordered_json summary;
    const TrainJobContext context = {.families = WithToyFamily(),
                                     .progress = ProgressMode::kNever,
                                     .optimizers = BuiltInOptimizers(),
                                     .objectives = BuiltInObjectives()};
    EXPECT_EQ(RunTraining(settings_, context, &summary), 0);
    return summary;
  }
  std::string Checkpoint(const std::string& step) const {
    return settings_.out + "/checkpoints/step-" + step;
  }

  test::TemporaryFolder folder_;
  TrainSettings settings_;
};

TEST_F(ToyRunTest, AFamilyTrainsAndReportsItsFlops) {
  const nlohmann::ordered_json summary = Train();
  EXPECT_EQ(summary.at("steps"), kSteps);
  EXPECT_GT(summary.at("model_flops_per_s").get<double>(), 0);
  EXPECT_LT(summary.at("last_loss_nats").get<double>(), summary.at("first_loss_nats").get<double>());
  const nlohmann::json config =
      nlohmann::json::parse(test::ReadFile(Checkpoint("00000006") + "/config.json"));
  EXPECT_EQ(config.at("model_type"), "toy-recurrent");
  EXPECT_EQ(config.at("state_size"), 24);
}

TEST_F(ToyRunTest, AFamilyIsResumedBitForBit) {
  Train();
  const std::string whole = test::ReadFile(Checkpoint("00000006") + "/model.safetensors");
  fs::remove_all(Checkpoint("00000006"));
  settings_.resume = true;
  settings_.model.clear();
  Train();
  EXPECT_EQ(test::ReadFile(Checkpoint("00000006") + "/model.safetensors"), whole);
}

TEST_F(ToyRunTest, AFamilyIsToldOfByADryRun) {
  settings_.dry_run = true;
  const nlohmann::ordered_json summary = Train();
  EXPECT_EQ(summary.at("parameters"), 2 * (16 * 16 + 16) + 16 + 258 * 16);
  EXPECT_FALSE(fs::exists(settings_.out));
}

TEST_F(ToyRunTest, AFamilyEvaluatesAndGenerates) {
  Train();
  const nlohmann::ordered_json evaluation =
      RunEvaluate(WithToyFamily(), {.checkpoint = settings_.out, .data = settings_.data[0], .threads = 1},
                  ProgressMode::kNever);
  EXPECT_GT(evaluation.at("tokens").get<int64_t>(), 0);
  EXPECT_LT(evaluation.at("loss_nats").get<double>(), 5.6);  // of an even guess among 258
  MemorySink out;
  GenerateSettings generate;
  generate.checkpoint = settings_.out;
  generate.prompt = "abc";
  generate.max_tokens = 5;
  generate.samples = 3;  // the prompt's state is forked
  generate.threads = 1;
  RunGenerate(WithToyFamily(), generate, &out);
  const std::string text(AsText(out.bytes()));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
}

}  // namespace
}  // namespace trainwright
