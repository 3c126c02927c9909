// Whole runs of a family, an objective and an optimizer that only the tests know, through the entries of the
// engines: what their mains fill in is all that differs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "lib/embedding/embedding_spec.h"
#include "lib/eval/evaluate_job.h"
#include "lib/eval/generate_job.h"
#include "lib/formats/token_stream.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/objective/objective_registry.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/run/metrics_log.h"
#include "lib/spec/own_options.h"
#include "lib/train/train_job.h"
#include "lib/train/train_state.h"
#include "tests/model/families.h"
#include "tests/model/toy_family.h"
#include "tests/spec/toy_recurrent_family.h"
#include "tests/support/support.h"
#include "tests/train/toy_objective.h"
#include "tests/train/toy_optimizer.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kToyRunSteps = 6;

const ModelFamilies& WithToyFamily() {
  static const ModelFamilies families({{&test::ToyRecurrent(), test::MakeToyBody}});
  return families;
}

/// What an engine's main fills in, of which every test changes one part.
struct Known {
  const ModelFamilies* families = &test::Families();
  ObjectiveRegistry objectives = BuiltInObjectives();
  OptimizerRegistry optimizers = BuiltInOptimizers();
};

/// Runs in a folder of the test's own.
class ToyFamilyRun : public testing::Test {
 protected:
  ToyFamilyRun() {
    settings_.data = {folder_.path("shards")};
    settings_.model = folder_.path("model.json");
    settings_.out = folder_.path("run");
    settings_.steps = kToyRunSteps;
    settings_.batch = 2;
    settings_.seq = 32;
    settings_.lr = 1e-2;
    settings_.save_every = "3";
  }

  void WriteModel(const std::string& config) const { test::WriteFile(settings_.model, config); }
  void WriteLlama() const {
    WriteModel(R"({"model_type":"llama","vocab_size":258,"hidden_size":16,"num_hidden_layers":2,)"
               R"("intermediate_size":32,"num_attention_heads":2,"max_position_embeddings":64})");
  }
  /// \param lines of the input
  /// \param records what --records says
  void MakeShards(const std::string& lines, const std::string& records) const {
    test::WriteFile(folder_.path("in.jsonl"), lines);
    const test::ProcessResult made =
        test::RunShell("cd '" + folder_.path() + "' && pretokenize -q --records " + records +
                       " in.jsonl | pack -q --chunk 64 -o shards");
    EXPECT_EQ(made.exit_status, 0) << made.standard_error;
  }
  static std::string TextLines(int documents) {
    std::string lines;
    for (int line = 0; line < documents; ++line) {
      lines += R"({"text":"abcdefgh )" + std::to_string(line) + " abcdefgh\"}\n";
    }
    return lines;
  }
  void MakeTextShards() const { MakeShards(TextLines(40), "lm"); }
  /// Such documents as records of the toy objective's own kind.
  void MakeToyShards(const std::string& name = "shards", int documents = 40) const {
    test::WriteFile(folder_.path("in.jsonl"), TextLines(documents));
    const std::string path = folder_.path("own.stream");
    const auto made = test::RunShell("cd '" + folder_.path() + "' && pretokenize -q in.jsonl > text.stream");
    ASSERT_EQ(made.exit_status, 0) << made.standard_error;
    TokenStreamReader reader(OpenSource(folder_.path("text.stream")));
    TokenStreamHeader header = reader.header();
    header.record_kind = test::kToyRecords;
    AtomicFileSink sink(path);
    TokenStreamWriter writer(&sink, header);
    for (DocumentPiece piece; reader.Next(&piece);) writer.Write(piece);
    writer.Finish();
    sink.Commit();
    const auto packed =
        test::RunShell("cd '" + folder_.path() + "' && pack -q --chunk 64 -o " + name + " own.stream");
    ASSERT_EQ(packed.exit_status, 0) << packed.standard_error;
  }

  nlohmann::ordered_json Train() const {
    nlohmann::ordered_json summary;
    const TrainJobContext context = {.families = *known_.families,
                                     .progress = ProgressMode::kNever,
                                     .optimizers = known_.optimizers,
                                     .objectives = known_.objectives};
    EXPECT_EQ(RunTraining(settings_, context, &summary), 0);
    return summary;
  }
  nlohmann::ordered_json Evaluate() const {
    return RunEvaluate(*known_.families, known_.objectives,
                       {.checkpoint = settings_.out, .data = settings_.data[0]}, ProgressMode::kNever);
  }
  /// \returns the number of lines that were generated
  int64_t Generate() const {
    MemorySink out;
    GenerateSettings generate;
    generate.checkpoint = settings_.out;
    generate.prompt = "abc";
    generate.max_tokens = 5;
    generate.samples = 3;  // the prompt's state is forked
    RunGenerate(*known_.families, generate, ProcessSetup(), &out);
    const std::string text(AsText(out.bytes()));
    return std::count(text.begin(), text.end(), '\n');
  }
  std::string Checkpoint(const std::string& step) const {
    return settings_.out + "/checkpoints/step-" + step;
  }
  /// Takes the last checkpoint away: the run is to go on from the one before it, with nothing given but the
  /// folder and the data.
  void ForgetTheEnd() {
    fs::remove_all(Checkpoint("00000006"));
    TrainSettings resumed;
    resumed.resume = true;
    resumed.data = settings_.data;
    resumed.out = settings_.out;
    resumed.save_every = settings_.save_every;
    settings_ = resumed;
  }
  void ExpectResumesBitForBit() {
    Train();
    const std::string whole = test::ReadFile(Checkpoint("00000006") + "/model.safetensors");
    const std::string state = test::ReadFile(Checkpoint("00000006") + "/trainwright_state.safetensors");
    ForgetTheEnd();
    Train();
    EXPECT_EQ(test::ReadFile(Checkpoint("00000006") + "/model.safetensors"), whole);
    EXPECT_EQ(test::ReadFile(Checkpoint("00000006") + "/trainwright_state.safetensors"), state);
  }

  test::TemporaryFolder folder_;
  TrainSettings settings_;
  Known known_;
};

class ToyFamilyRunTest : public ToyFamilyRun {
 protected:
  ToyFamilyRunTest() {
    known_.families = &WithToyFamily();
    MakeTextShards();
    WriteModel(R"({"model_type":"toy-recurrent","vocab_size":258,"hidden_size":16,"num_hidden_layers":2,)"
               R"("trained_length":64,"recurrence_start":0.25,"tie_word_embeddings":true})");
  }
};

TEST_F(ToyFamilyRunTest, TrainsAndReportsItsFlops) {
  const nlohmann::ordered_json summary = Train();
  EXPECT_EQ(summary.at("steps"), kToyRunSteps);
  EXPECT_GT(summary.at("model_flops_per_s").get<double>(), 0);
  int64_t steps = 0;
  ForEachMetricsRecord(settings_.out + "/metrics.jsonl", [&](const nlohmann::ordered_json& record) {
    if (record.at("type") != "step") return;
    ++steps;
    const auto tokens = record.at("tokens").get<double>(), labels = record.at("labels").get<double>();
    // Forward and twice as much backward, two operations a multiply-add: W of both layers, and the head.
    const double expected = 3 * 2 * (2 * 16 * 16 * tokens + 16 * 258 * labels);
    EXPECT_NEAR(record.at("model_flops_per_s").get<double>() * record.at("step_time_s").get<double>(),
                expected, 1e-6 * expected);
  });
  EXPECT_EQ(steps, kToyRunSteps);
  EXPECT_LT(summary.at("last_loss_nats").get<double>(), summary.at("first_loss_nats").get<double>());
  const nlohmann::json config =
      nlohmann::json::parse(test::ReadFile(Checkpoint("00000006") + "/config.json"));
  EXPECT_EQ(config.at("model_type"), "toy-recurrent");
  EXPECT_EQ(config.at("recurrence_start"), 0.25);
}

TEST_F(ToyFamilyRunTest, IsResumedBitForBit) {
  ExpectResumesBitForBit();
}

TEST_F(ToyFamilyRunTest, IsToldOfByADryRun) {
  settings_.dry_run = true;
  const nlohmann::ordered_json summary = Train();
  EXPECT_GT(summary.at("shapes_bytes").get<int64_t>(), 0);
  EXPECT_EQ(summary.at("parameters"), 2 * (16 * 16 + 16) + 16 + 258 * 16);
  EXPECT_FALSE(fs::exists(settings_.out));
}

TEST_F(ToyFamilyRunTest, EvaluatesAndGenerates) {
  Train();
  const nlohmann::ordered_json evaluation = Evaluate();
  EXPECT_GT(evaluation.at("tokens").get<int64_t>(), 0);
  EXPECT_LT(evaluation.at("loss_nats").get<double>(), 5.6);  // of an even guess among 258
  EXPECT_EQ(Generate(), 3);
}

class ToyObjectiveRunTest : public ToyFamilyRun {
 protected:
  ToyObjectiveRunTest() {
    known_.objectives.Add(test::ToyObjectiveKind());
    MakeToyShards();
    WriteLlama();
  }
};

TEST_F(ToyObjectiveRunTest, IsChosenByTheRecordsThatOnlyItTakes) {
  Train();
  const nlohmann::json state =
      nlohmann::json::parse(test::ReadFile(Checkpoint("00000006") + "/metadata.json"));
  EXPECT_EQ(state.at("training_config_summary").at("objective"), test::kToyObjective);
}

TEST_F(ToyObjectiveRunTest, TrainsByBothTermsWhichTheRecordsTell) {
  settings_.objective = test::kToyObjective;
  const nlohmann::ordered_json summary = Train();
  EXPECT_GT(summary.at("model_flops_per_s").get<double>(), 0);
  std::vector<double> all, even;
  ForEachMetricsRecord(settings_.out + "/metrics.jsonl", [&](const nlohmann::ordered_json& record) {
    if (record.at("type") != "step") return;
    all.push_back(record.at("loss_terms").at("all_nats"));
    even.push_back(record.at("loss_terms").at("even_nats"));
  });
  ASSERT_EQ(all.size(), size_t{kToyRunSteps});
  EXPECT_LT(all.back(), all.front());
  EXPECT_LT(even.back(), even.front());
}

TEST_F(ToyObjectiveRunTest, IsTrainedForEpochsOfItsOwnSamples) {
  // Each of its samples is a document. The objectives of the library lay several together.
  settings_.steps.reset();
  settings_.epochs = 1;
  settings_.batch = 8;
  EXPECT_EQ(Train().at("steps"), 40 / 8);
}

TEST_F(ToyObjectiveRunTest, IsResumedBitForBitWithItsOptions) {
  settings_.objective_options = {"even_weight=0.5"};
  ExpectResumesBitForBit();
  EXPECT_THAT(test::ReadFile(settings_.out + "/config.yaml"),
              testing::HasSubstr("objective-option: [\"even_weight=0.5\"]"));
}

TEST_F(ToyObjectiveRunTest, OfOtherOptionsItIsRefusedOnResume) {
  Train();
  settings_.resume = true;
  settings_.objective_options = {"even_weight=0.5"};
  EXPECT_THAT(test::MessageOf([&] { Train(); }),
              testing::HasSubstr("even_weight=0.5 differs from the run's even_weight=0.25"));
}

TEST_F(ToyObjectiveRunTest, OptionsThatItDoesNotTakeAreRefused) {
  settings_.z_loss = 0.1;
  EXPECT_EQ(test::MessageOf([&] { Train(); }), "--z-loss: has a meaning only with --objective lm or sft | ");
  settings_.z_loss.reset();
  settings_.objective_options = {"odd_weight=1"};
  EXPECT_EQ(test::CodeOf([&] { Train(); }), ErrorCode::kUsage);
}

TEST_F(ToyObjectiveRunTest, IsNamedWhereAnotherDoesNotTakeItsRecords) {
  settings_.objective = kLmObjective;
  EXPECT_EQ(test::MessageOf([&] { Train(); }),
            "--objective lm: does not take the kind-200 records of the data | train with --objective toy");
}

TEST_F(ToyObjectiveRunTest, IsMeasuredWithTheOptionsOfTheCheckpoint) {
  settings_.objective_options = {"even_weight=0.5"};
  Train();
  EXPECT_EQ(Evaluate().at("toy_measure"), 0.5);
}

TEST_F(ToyObjectiveRunTest, AModelThatItDidNotTrainIsMeasuredAsItsFolderSays) {
  Train();
  ObjectiveKind other = test::ToyObjectiveKind();
  other.description.name = "other";
  other.own_of_folder = [](const EmbeddingSpec& spec) {
    return OwnOptions{{"even_weight", static_cast<double>(spec.query_max_len)}};
  };
  known_.objectives = BuiltInObjectives();
  known_.objectives.Add(other);
  EXPECT_EQ(Evaluate().at("toy_measure"), 64);  // its positions
}

TEST_F(ToyObjectiveRunTest, IsToldOfByADryRun) {
  settings_.dry_run = true;
  EXPECT_GT(Train().at("memory_bytes").at("total").get<int64_t>(), 0);
  EXPECT_FALSE(fs::exists(settings_.out));
}

/// Tokens of the largest micro-batch of each call of Objective::Run.
struct WatchedPasses {
  std::vector<int64_t> computed, on_shapes;
  std::vector<size_t> of_step;  ///< StepBatches::of_step of all of them
  bool lack_memory = false;     ///< those that compute
  int64_t sample_bytes = 0;     ///< what a sample of a step keeps
};

class WatchedObjective final : public test::ToyObjective {
 public:
  WatchedObjective(double weight, WatchedPasses* passes) : ToyObjective(weight), passes_(*passes) {}
  void Run(const StepPass& pass, LossSums* sums) const override {
    int64_t largest = 0;
    for (const PackedBatch& batch : pass.batches->micro_batches) {
      largest = std::max(largest, batch.num_tokens());
    }
    passes_.of_step.push_back(pass.batches->of_step);
    const bool on_shapes = pass.model->parameters().values().is_meta();
    (on_shapes ? passes_.on_shapes : passes_.computed).push_back(largest);
    if (!on_shapes && passes_.lack_memory) throw std::bad_alloc();
    ToyObjective::Run(pass, sums);
  }
  int64_t HeldBytes(const StepShape& shape, const ModelConfig& /*model*/) const override {
    return passes_.sample_bytes * shape.samples_of_rank;
  }

 private:
  WatchedPasses& passes_;
};

class WatchedObjectiveRunTest : public ToyObjectiveRunTest {
 protected:
  WatchedObjectiveRunTest() {
    ObjectiveKind kind = test::ToyObjectiveKind();
    kind.make = [this](const ObjectiveOptions& options) {
      return std::make_unique<WatchedObjective>(options.own.at("even_weight").number(), &passes_);
    };
    known_.objectives = BuiltInObjectives();
    known_.objectives.Add(kind);
  }
  WatchedPasses passes_;
};

TEST_F(WatchedObjectiveRunTest, TheBatchIsFoundByItsOwnPasses) {
  settings_.find_batch = settings_.explain = true;  // trains nothing
  Train();
  ASSERT_FALSE(passes_.computed.empty());
  EXPECT_EQ(passes_.computed.front(), *std::min_element(passes_.computed.begin(), passes_.computed.end()));
  ASSERT_FALSE(passes_.on_shapes.empty());  // of the next batch, before it is run
  EXPECT_GT(passes_.on_shapes.front(), passes_.computed.front());
}

TEST_F(WatchedObjectiveRunTest, ADryRunTellsWhatItsStepsKeepAndRunsAMicroBatchAsOneOfSeveral) {
  settings_.dry_run = true;
  settings_.batch = 2;
  settings_.accum = 3;
  passes_.sample_bytes = 1000;
  EXPECT_EQ(Train().at("memory_bytes").at("representations"), 6 * 1000);
  ASSERT_FALSE(passes_.of_step.empty());
  for (const size_t of_step : passes_.of_step) EXPECT_EQ(of_step, 3u);
}

TEST_F(WatchedObjectiveRunTest, ItsOwnPassesTellWhatToDoWhereMemoryRanOut) {
  settings_.accum = 3;
  passes_.lack_memory = true;
  EXPECT_THAT(test::MessageOf([&] { Train(); }), testing::HasSubstr("activations, "));
  ASSERT_EQ(passes_.computed.size(), 1u);
  EXPECT_EQ(passes_.on_shapes, passes_.computed);  // the largest micro-batch of the step that failed
}

TEST_F(ToyObjectiveRunTest, IsEvaluatedWithinTheRunAndAfterIt) {
  settings_.eval_data = {settings_.data[0]};
  Train();
  int evaluations = 0;
  ForEachMetricsRecord(settings_.out + "/metrics.jsonl", [&](const nlohmann::ordered_json& record) {
    if (record.at("type") == "eval") evaluations += record.at("toy_measure") == 0.25 ? 1 : 0;
  });
  EXPECT_GT(evaluations, 0);
  const nlohmann::ordered_json evaluation = Evaluate();
  EXPECT_EQ(evaluation.at("metric"), test::kToyObjective);
  EXPECT_EQ(evaluation.at("toy_measure"), 0.25);
  EXPECT_LT(evaluation.at("loss_nats").get<double>(), 5.6);
  EXPECT_EQ(Generate(), 3);
}

TEST_F(ToyObjectiveRunTest, IsMissedWhereNobodyPutItIntoTheRegistry) {
  known_.objectives = BuiltInObjectives();
  EXPECT_EQ(test::CodeOf([&] { Train(); }), ErrorCode::kBadInput);
  settings_.objective = test::kToyObjective;
  EXPECT_THAT(test::MessageOf([&] { Train(); }), testing::HasSubstr("this program knows lm, sft"));
}

/// The toy on the first set of --data, as a program may have known TwoLoaderToy.
class ReadsFirstSetAlone final : public test::ToyObjective {
 public:
  using ToyObjective::ToyObjective;
  SampleStreamOptions Cutting(const std::string& loader, const SampleStreamOptions& options) const override {
    SampleStreamOptions cutting = ToyObjective::Cutting(loader, options);
    cutting.sets = {options.sets.at(0)};
    return cutting;
  }
};

/// Whose second loader has another seed.
class OtherOrderOfSecond final : public test::TwoLoaderToy {
 public:
  using TwoLoaderToy::TwoLoaderToy;
  SampleStreamOptions Cutting(const std::string& loader, const SampleStreamOptions& options) const override {
    SampleStreamOptions cutting = TwoLoaderToy::Cutting(loader, options);
    if (loader == test::kSecondLoader) ++cutting.seed;
    return cutting;
  }
};

/// On two sets of 40 and of 5 documents, of which each step takes two samples each.
class TwoLoaderRunTest : public ToyFamilyRun {
 protected:
  TwoLoaderRunTest() {
    known_.objectives.Add(test::TwoLoaderToyKind());
    MakeToyShards("shards", 40);
    MakeToyShards("others", 5);
    WriteLlama();
    settings_.data.push_back(folder_.path("others"));
    settings_.accum = 2;
  }
  /// Another objective of this name, for a program that knows it otherwise.
  template <typename Kind>
  void Replace() {
    known_.objectives = BuiltInObjectives();
    ObjectiveKind other = test::TwoLoaderToyKind();
    other.make = [](const ObjectiveOptions&) { return std::make_unique<Kind>(0.25); };
    known_.objectives.Add(other);
  }
  TrainState StateAt(const std::string& step) const {
    return ReadTrainState(Checkpoint(step) + "/trainwright_state.safetensors");
  }
};

TEST_F(TwoLoaderRunTest, TakesEachStepFromBothSets) {
  Train();
  int64_t steps = 0;
  ForEachMetricsRecord(settings_.out + "/metrics.jsonl", [&](const nlohmann::ordered_json& record) {
    if (record.at("type") != "step") return;
    ++steps;
    const auto of_sets = record.at("source_tokens").get<std::vector<int64_t>>();
    ASSERT_EQ(of_sets.size(), 2u);
    EXPECT_GT(of_sets[0], 0);
    EXPECT_GT(of_sets[1], 0);
    EXPECT_EQ(of_sets[0] + of_sets[1], record.at("tokens").get<int64_t>());
  });
  EXPECT_EQ(steps, kToyRunSteps);
}

TEST_F(TwoLoaderRunTest, StoresWhereEachStands) {
  Train();
  const LoaderStates states = StateAt("00000006").trainer.loaders;
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states.at(kMainLoader).cursor, (SampleCursor{.sample = 12}));
  EXPECT_EQ(states.at(test::kSecondLoader).cursor, (SampleCursor{.epoch = 2, .sample = 2}));
  const nlohmann::json metadata =
      nlohmann::json::parse(test::ReadFile(Checkpoint("00000006") + "/metadata.json"));
  EXPECT_NEAR(metadata.at("epoch").get<double>(), 12.0 / 40, 1e-9);
}

TEST_F(TwoLoaderRunTest, IsResumedBitForBit) {
  ExpectResumesBitForBit();
}

TEST_F(TwoLoaderRunTest, IsToldOfByADryRunAlsoWhereItGoesOn) {
  settings_.dry_run = true;
  const int64_t loader_bytes = Train().at("memory_bytes").at("loader");
  EXPECT_GT(loader_bytes, 0);
  EXPECT_FALSE(fs::exists(settings_.out));
  settings_.dry_run = false;
  Train();
  ForgetTheEnd();
  settings_.dry_run = true;
  EXPECT_EQ(Train().at("steps"), 3);
}

TEST_F(TwoLoaderRunTest, IsRefusedTheStateOfARunWithOneLoader) {
  Replace<ReadsFirstSetAlone>();
  Train();
  ForgetTheEnd();
  Replace<test::TwoLoaderToy>();
  EXPECT_THAT(
      test::MessageOf([&] { Train(); }),
      testing::HasSubstr(
          R"(states where the run's loaders "data" are, and this one has "data", "second" | continue with)"));
}

TEST_F(TwoLoaderRunTest, ItsStateIsRefusedWhereThereIsOneLoader) {
  Train();
  ForgetTheEnd();
  Replace<ReadsFirstSetAlone>();
  EXPECT_THAT(test::MessageOf([&] { Train(); }),
              testing::HasSubstr(R"(the run's loaders "data", "second" are, and this one has "data")"));
}

TEST_F(TwoLoaderRunTest, IsRefusedAStateOfAnotherOrderOfTheSecond) {
  Train();
  ForgetTheEnd();
  Replace<OtherOrderOfSecond>();
  EXPECT_THAT(test::MessageOf([&] { Train(); }), testing::HasSubstr("the loader \"second\" is in other"));
}

TEST_F(TwoLoaderRunTest, BeginsTheDataAnewWhereAnotherOrderOfTheSecondIsAllowed) {
  Train();
  ForgetTheEnd();
  Replace<OtherOrderOfSecond>();
  settings_.allow_data_change = true;
  Train();
  const LoaderStates states = StateAt("00000006").trainer.loaders;
  EXPECT_EQ(states.at(kMainLoader).cursor, (SampleCursor{.sample = 6}));
  EXPECT_EQ(states.at(test::kSecondLoader).cursor, (SampleCursor{.epoch = 1, .sample = 1}));
}

class ToyOptimizerRunTest : public ToyFamilyRun {
 protected:
  ToyOptimizerRunTest() {
    known_.optimizers.Add(test::ToyOptimizerKind());
    settings_.optimizer = test::kToyOptimizer;
    MakeTextShards();
    WriteLlama();
  }
};

TEST_F(ToyOptimizerRunTest, TrainsAndIsNamedInTheRecordsOfTheRun) {
  const nlohmann::ordered_json summary = Train();
  EXPECT_LT(summary.at("last_loss_nats").get<double>(), summary.at("first_loss_nats").get<double>());
  EXPECT_THAT(test::ReadFile(settings_.out + "/config.yaml"), testing::HasSubstr("optimizer: \"toy\""));
}

TEST_F(ToyOptimizerRunTest, IsResumedBitForBit) {
  ExpectResumesBitForBit();
}

TEST_F(ToyOptimizerRunTest, IsCountedInTheMemoryThatADryRunTells) {
  settings_.dry_run = true;
  const nlohmann::ordered_json toy = Train();
  settings_.optimizer.clear();
  const nlohmann::ordered_json adamw = Train();
  const auto bytes = [](const nlohmann::ordered_json& told) {
    return told.at("memory_bytes").at("optimizer").get<int64_t>();
  };
  // One moment of AdamW's two, and a few numbers a segment.
  EXPECT_GT(bytes(toy), bytes(adamw) / 2);
  EXPECT_LT(bytes(toy), bytes(adamw) / 2 + 1000);
}

TEST_F(ToyOptimizerRunTest, OptionsThatItDoesNotTakeAreRefusedAndNotTold) {
  Train();
  const std::string told = test::ReadFile(settings_.out + "/config.yaml");
  EXPECT_THAT(told,
              testing::HasSubstr("beta1: 0.9\noptimizer: \"toy\"\noptimizer-option: [\"damping=0.5\"]"));
  EXPECT_THAT(told, testing::Not(testing::HasSubstr("beta2")));
  settings_.out = folder_.path("other");
  settings_.optimizer_states = "bf16";
  EXPECT_EQ(test::MessageOf([&] { Train(); }),
            "--optimizer-states: has a meaning only with --optimizer adamw | ");
}

TEST_F(ToyOptimizerRunTest, OfAnotherRunItIsRefusedOnResume) {
  Train();
  settings_.resume = true;
  settings_.optimizer = kDefaultOptimizer;
  EXPECT_EQ(test::CodeOf([&] { Train(); }), ErrorCode::kUsage);
}

TEST_F(ToyOptimizerRunTest, IsMissedWhereNobodyPutItIntoTheRegistry) {
  known_.optimizers = BuiltInOptimizers();
  EXPECT_THAT(test::MessageOf([&] { Train(); }), testing::HasSubstr("this program knows adamw"));
}

TEST_F(ToyOptimizerRunTest, WhatItTrainedEvaluatesAndGenerates) {
  Train();
  EXPECT_LT(Evaluate().at("loss_nats").get<double>(), 5.6);
  EXPECT_EQ(Generate(), 3);
}

}  // namespace
}  // namespace trainwright
