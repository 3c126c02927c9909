// What an objective promises whatever it learns, shown with one that the library does not know.
#include "tests/train/toy_objective.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lib/run/html_report.h"
#include "lib/run/metrics_log.h"
#include "lib/run/run_report.h"
#include "lib/train/run_recorder.h"
#include "lib/train/train_state.h"
#include "tests/support/faulty_shard_set.h"
#include "tests/support/support.h"
#include "tests/train/tiny_training.h"

namespace trainwright {
namespace {

using test::CountingDocuments;
using test::MemoryShardSet;
using test::TemporaryFolder;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::Not;

constexpr double kWeight = 0.25;

ObjectiveRegistry WithToyObjective() {
  ObjectiveRegistry registry = BuiltInObjectives();
  registry.Add(test::ToyObjectiveKind());
  return registry;
}

TrainPlan ToyObjectivePlan() {
  TrainPlan plan = test::TinyPlan();
  plan.objective = test::kToyObjective;
  plan.objective_own = {{"even_weight", kWeight}};
  return plan;
}

struct ToyObjectiveRun {
  explicit ToyObjectiveRun(const TrainPlan& plan, bool defer = false)
      : model(
            MakeModel(test::Families(), test::TinyModel(), plan.precision, at::Device(at::kCPU), plan.seed)),
        loaders(ObjectiveOf(plan, WithToyObjective(), {test::kToyRecords})
                    ->OpenLoaders(&set, plan.stream_options(), {})),
        stream(loaders.at(kMainLoader).get()),
        trainer(test::PartsOf(model.get(), stream, plan, BuiltInOptimizers(), WithToyObjective()), plan,
                at::Device(at::kCPU), defer) {}
  const MemoryShardSet set = CountingDocuments(24, test::kToyRecords);
  std::unique_ptr<LanguageModel> model;
  const OpenedLoaders loaders;
  SampleLoader* stream;
  Trainer trainer;
};

TEST(ToyObjectiveTest, TrainsThroughTheTrainerByBothTerms) {
  ToyObjectiveRun run(ToyObjectivePlan());
  const StepReport first = run.trainer.Step();
  StepReport last = first;
  while (!run.trainer.done()) last = run.trainer.Step();
  for (const char* term : {"all_nats", "even_nats"}) EXPECT_LT(last.term(term), first.term(term) / 2) << term;
  EXPECT_DOUBLE_EQ(last.loss_nats, last.term("all_nats") + last.term("even_nats"));
}

TEST(SeveralLoadersTest, AStepThatOneOfThemCannotReadIsTakenFromNone) {
  const MemoryShardSet sound = CountingDocuments(24, test::kToyRecords);
  test::FaultyShardSet corrupt(
      std::vector<Chunk>(8, Chunk{.segments = {{.tokens = 8}}, .tokens = std::vector<uint32_t>(8, 1)}), 4);
  for (uint64_t chunk = 0; chunk < corrupt.chunks(); ++chunk) corrupt.corrupt.insert(chunk);
  const auto open = [](const ShardSet& set) {
    return SampleLoader(&set, std::make_unique<test::ToyCutter>(16), {.shuffle = false}, {.workers = 0});
  };
  SampleLoader main = open(sound), second = open(corrupt);
  const SampleLoaders loaders = {{kMainLoader, &main}, {test::kSecondLoader, &second}};
  const test::TwoLoaderToy toy(kWeight);
  EXPECT_EQ(test::CodeOf([&] { toy.NextStep(loaders, 4, false); }), ErrorCode::kBadInput);
  EXPECT_EQ(main.cursor(), SampleCursor());
  corrupt.restored = true;
  EXPECT_EQ(toy.NextStep(loaders, 4, false).size(), 4u);
  EXPECT_EQ(main.cursor().sample, 2u);
}

TEST(ToyObjectiveTest, EachTermIsAMeanOverItsOwnCountOfTheWholeStep) {
  const TrainPlan plan = ToyObjectivePlan();
  ToyObjectiveRun run(plan);
  // The samples of the step in one batch, cut by hand.
  ToyObjectiveRun other(plan);
  PackedBatch batch;
  for (const Sample& sample : other.stream->NextStep(plan.samples_per_step(), false)) sample.AppendTo(&batch);
  batch.span_starts.clear();
  double even = 0, all = 0;
  for (size_t i = 0; i < batch.tokens.size(); ++i) {
    batch.positions[i] %= test::kToySpanTokens;
    if (batch.positions[i] == 0) batch.span_starts.push_back(static_cast<int32_t>(i));
    if (batch.labels[i] == kIgnoreLabel) continue;
    ++all;
    if (batch.positions[i] % 2 == 0) ++even;
  }
  batch.span_starts.push_back(static_cast<int32_t>(batch.tokens.size()));
  ASSERT_NE(even, all);
  const double all_nats = other.model->Loss(ToModelInput(batch)).loss_nats;
  for (size_t i = 0; i < batch.labels.size(); ++i) {
    if (batch.positions[i] % 2 != 0) batch.labels[i] = kIgnoreLabel;
  }
  const double even_nats = other.model->Loss(ToModelInput(batch)).loss_nats;
  const StepReport report = run.trainer.Step();
  EXPECT_NEAR(report.term("all_nats"), all_nats / all, 1e-5);
  EXPECT_NEAR(report.term("even_nats"), kWeight * even_nats / even, 1e-5);
}

TEST(ToyObjectiveTest, TheSplitIntoMicroBatchesChangesNothingButRounding) {
  TrainPlan whole = ToyObjectivePlan();
  whole.batch = 8;
  whole.accum = 1;
  TrainPlan split = whole;
  split.batch = 1;
  split.accum = 8;
  ToyObjectiveRun one(whole), many(split);
  const StepReport expected = one.trainer.Step(), report = many.trainer.Step();
  EXPECT_NEAR(report.term("even_nats"), expected.term("even_nats"), 1e-6);
  EXPECT_NEAR(report.grad_norm, expected.grad_norm, 1e-6);
}

TEST(ToyObjectiveTest, AStepThatIsDecidedOnTheDeviceTellsTheSameTerms) {
  ToyObjectiveRun now(ToyObjectivePlan()), later(ToyObjectivePlan(), /*defer=*/true);
  for (int step = 0; step < 5; ++step) {
    const StepReport expected = now.trainer.Step(), report = later.trainer.Step();
    for (const LossTermMean& term : expected.terms) {
      EXPECT_NEAR(report.term(term.name), term.mean, 1e-3) << term.name << ", step " << step;
    }
  }
  EXPECT_EQ(later.trainer.device_reads(), 5);
}

TEST(ToyObjectiveTest, IsResumedBitForBitFromAStateThatKeepsItsNameAndOptions) {
  const TemporaryFolder folder;
  const TrainPlan plan = ToyObjectivePlan();
  ToyObjectiveRun whole(plan);
  at::Tensor weights;
  for (int step = 0; step < 20; ++step) {
    if (step == 11) {
      TrainState state;
      state.plan = plan;
      state.trainer = whole.trainer.state();
      WriteTrainState(folder.path("state"), state);
      weights = whole.model->parameters().values().clone();
    }
    whole.trainer.Step();
  }
  const TrainState state = ReadTrainState(folder.path("state"));
  EXPECT_EQ(state.plan.objective, test::kToyObjective);
  ToyObjectiveRun resumed(state.plan);
  resumed.trainer.Restore(state.trainer);
  resumed.model->parameters().values().copy_(weights);
  resumed.model->parameters().RefreshCompute();
  while (resumed.trainer.step() < 20) resumed.trainer.Step();
  EXPECT_TRUE(at::equal(resumed.model->parameters().values(), whole.model->parameters().values()));
}

/// The sum of both terms of a first step.
double FirstLossNats(const OwnOptions& own) {
  TrainPlan plan = ToyObjectivePlan();
  plan.objective_own = own;
  const TemporaryFolder folder;
  TrainState state;
  state.plan = plan;
  state.trainer = ToyObjectiveRun(ToyObjectivePlan()).trainer.state();
  WriteTrainState(folder.path("state"), state);
  return ToyObjectiveRun(ReadTrainState(folder.path("state")).plan).trainer.Step().loss_nats;
}

TEST(ToyObjectiveTest, AnOptionThatAStateLacksHasItsDefault) {
  EXPECT_EQ(FirstLossNats({}), FirstLossNats({{"even_weight", 0.25}}));
  EXPECT_NE(FirstLossNats({}), FirstLossNats({{"even_weight", 0.5}}));
}

TEST(ToyObjectiveTest, AnOptionThatItDoesNotHaveIsRefusedByName) {
  EXPECT_EQ(test::CodeOf([] { FirstLossNats({{"odd_weight", 1}}); }), ErrorCode::kBadInput);
  EXPECT_EQ(test::MessageOf([] {
              FirstLossNats({{"odd_weight", 1}});
            }),
            "the objective toy: has no option 'odd_weight' of its own | it has even_weight");
}

TEST(ToyObjectiveTest, TakesItsOwnRecordsAloneAndTheOthersDoNotTakeThem) {
  EXPECT_EQ(test::CodeOf([] { ObjectiveOf(ToyObjectivePlan(), WithToyObjective(), {RecordKind::kLm}); }),
            ErrorCode::kBadInput);
  EXPECT_EQ(test::CodeOf([] { ObjectiveOf(test::TinyPlan(), WithToyObjective(), {test::kToyRecords}); }),
            ErrorCode::kBadInput);
}

/// A run of some steps and an evaluation with records in a folder.
class ToyRecordsTest : public testing::Test {
 protected:
  void Train() {
    ToyObjectiveRun run(ToyObjectivePlan());
    const RunDirectory directory(folder_.path("run" + std::to_string(tokens_if_padded_)));
    RunRecorder recorder(&directory,
                         {.plan = ToyObjectivePlan(),
                          .model = test::TinyModel(),
                          .loss_terms = run.trainer.objective().terms(),
                          .start = std::chrono::steady_clock::now()},
                         {.progress = ProgressMode::kNever, .gpu_use = gpu_use_});
    for (int step = 0; step < 5; ++step) {
      reports_.push_back(run.trainer.Step());
      reports_.back().tokens_if_padded = tokens_if_padded_;
      reports_.back().texts = texts_;
      if (step == cleaned_up_after_) reports_.back().host.cleanup_s = 0.5;
      recorder.RecordStep(reports_.back(), 0, false);
    }
    Evaluation evaluation = run.trainer.objective().Evaluate(run.model.get(), run.set, {});
    evaluation.measures.insert(evaluation.measures.end(), more_measures_.begin(), more_measures_.end());
    recorder.RecordEvaluation(evaluation, 0.1);
    metrics_path_ = directory.metrics_path();
    tensorboard_path_ = directory.tensorboard_path();
    figure_ = recorder.report().Figure();
  }

  TemporaryFolder folder_;
  int64_t tokens_if_padded_ = 0;  ///< of each step
  TextCounts texts_;              ///< likewise
  int cleaned_up_after_ = -1;     ///< the number of a step, from 0
  std::function<std::optional<double>()> gpu_use_;
  std::vector<EvaluationMeasure> more_measures_;  ///< of the evaluation
  std::vector<StepReport> reports_;
  std::string metrics_path_, tensorboard_path_;
  PlotFigure figure_;
};

TEST_F(ToyRecordsTest, TheMetricsTellBothTermsOfEveryStep) {
  Train();
  size_t steps = 0;
  ForEachMetricsRecord(metrics_path_, [&](const nlohmann::ordered_json& record) {
    if (record.at("type") != "step") return;
    const StepReport& report = reports_.at(steps++);
    EXPECT_EQ(record.at("loss_nats"), report.loss_nats);
    EXPECT_EQ(record.at("loss_terms").at("all_nats"), report.term("all_nats"));
    EXPECT_EQ(record.at("loss_terms").at("even_nats"), report.term("even_nats"));
  });
  EXPECT_EQ(steps, 5u);
}

TEST_F(ToyRecordsTest, TheMetricsTellTheTokensOfPaddingWhereTheyAreKnown) {
  for (const int64_t tokens : {0, 700}) {
    tokens_if_padded_ = tokens;
    Train();
    nlohmann::ordered_json last;
    ForEachMetricsRecord(metrics_path_, [&](const nlohmann::ordered_json& record) {
      if (record.at("type") == "step") last = record;
    });
    EXPECT_EQ(last.value("tokens_if_padded", int64_t{0}), tokens);
    EXPECT_EQ(last.contains("tokens_if_padded"), tokens > 0);
  }
}

TEST_F(ToyRecordsTest, TheMetricsTellHowBusyAGpuIsWhereThatIsKnown) {
  int asked = 0;
  gpu_use_ = [&]() -> std::optional<double> {
    return ++asked == 3 ? std::nullopt : std::optional(0.25 * asked);
  };
  Train();
  std::vector<double> told;
  ForEachMetricsRecord(metrics_path_, [&](const nlohmann::ordered_json& record) {
    if (record.at("type") == "step") told.push_back(record.value("gpu_util", -1.0));
  });
  EXPECT_EQ(told, (std::vector<double>{0.25, 0.5, -1, 1, 1.25}));
}

TEST_F(ToyRecordsTest, TheMetricsTellWhatCleaningUpTookWhereItWasDone) {
  cleaned_up_after_ = 3;
  Train();
  std::vector<double> told;
  ForEachMetricsRecord(metrics_path_, [&](const nlohmann::ordered_json& record) {
    if (record.at("type") == "step") told.push_back(record.value("cleanup_s", -1.0));
  });
  EXPECT_EQ(told, (std::vector<double>{-1, -1, -1, 0.5, -1}));
}

TEST_F(ToyRecordsTest, TheMetricsTellTheTextsOfEveryStepThatHasSome) {
  texts_ = {.queries = 2, .passages = 5, .generative_rows = 0};
  Train();
  int steps = 0;
  ForEachMetricsRecord(metrics_path_, [&](const nlohmann::ordered_json& record) {
    if (record.at("type") != "step") return;
    ++steps;
    EXPECT_EQ(record.at("queries"), 2);
    EXPECT_EQ(record.at("passages"), 5);
    EXPECT_EQ(record.at("generative_rows"), 0);
  });
  EXPECT_EQ(steps, 5);
}

TEST_F(ToyRecordsTest, TheMetricsTellNoTextsWhereThereAreNone) {
  Train();
  ForEachMetricsRecord(metrics_path_, [](const nlohmann::ordered_json& record) {
    EXPECT_FALSE(record.contains("queries"));
    EXPECT_FALSE(record.contains("generative_rows"));
  });
}

TEST_F(ToyRecordsTest, TheMetricsTellWhatItsEvaluationMeasures) {
  Train();
  int evaluations = 0;
  ForEachMetricsRecord(metrics_path_, [&](const nlohmann::ordered_json& record) {
    if (record.at("type") != "eval") return;
    ++evaluations;
    EXPECT_EQ(record.at("toy_measure"), kWeight);
    EXPECT_FALSE(record.contains("perplexity"));
  });
  EXPECT_EQ(evaluations, 1);
}

TEST_F(ToyRecordsTest, AMeasureThatIsNotKnownIsNullInTheMetricsAndToldNowhereElse) {
  more_measures_ = {{.name = "lacking_measure", .value = std::nullopt, .text = "inf of it"}};
  testing::internal::CaptureStderr();
  Train();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("inf of it")));
  ForEachMetricsRecord(metrics_path_, [](const nlohmann::ordered_json& record) {
    EXPECT_TRUE(record.at("type") != "eval" || record.at("lacking_measure").is_null());
  });
  for (const auto& entry : std::filesystem::directory_iterator(tensorboard_path_)) {
    EXPECT_THAT(test::ReadFile(entry.path().string()), Not(HasSubstr("lacking_measure")));
  }
}

TEST_F(ToyRecordsTest, TensorboardGetsACurveOfEachTerm) {
  Train();
  std::string events;
  for (const auto& entry : std::filesystem::directory_iterator(tensorboard_path_)) {
    events += test::ReadFile(entry.path().string());
  }
  EXPECT_THAT(events, HasSubstr("loss/all_nats"));
  EXPECT_THAT(events, HasSubstr("loss/even_nats"));
  EXPECT_THAT(events, HasSubstr("toy_measure/eval"));
}

TEST_F(ToyRecordsTest, TensorboardGetsTheNamesOfTheGuideOfTenToo) {
  Train();
  std::string events;
  for (const auto& entry : std::filesystem::directory_iterator(tensorboard_path_)) {
    events += test::ReadFile(entry.path().string());
  }
  for (const char* name : {"Loss/train", "Throughput/tokens_per_sec", "Memory/allocated_gb"}) {
    EXPECT_THAT(events, HasSubstr(name));
  }
}

TEST_F(ToyRecordsTest, TheReportDrawsACurveOfEachTerm) {
  Train();
  EXPECT_THAT(figure_.panels.at(0).series, Contains(Field(&PlotSeries::name, "all_nats")));
  EXPECT_THAT(figure_.panels.at(0).series, Contains(Field(&PlotSeries::name, "even_nats")));
}

TEST_F(ToyRecordsTest, TheReportsFileDrawsACurveOfEachTerm) {
  Train();
  const std::string html =
      test::ReadFile(WriteRunReports(std::filesystem::path(metrics_path_).parent_path().string()));
  EXPECT_THAT(html, HasSubstr("all_nats"));
  EXPECT_THAT(html, HasSubstr("even_nats"));
}

}  // namespace
}  // namespace trainwright
