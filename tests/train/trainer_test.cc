#include "lib/train/trainer.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "lib/checkpoint/checkpoint.h"
#include "lib/device/determinism.h"
#include "lib/io/process_memory.h"
#include "lib/model/weights_io.h"
#include "lib/objective/perplexity.h"
#include "lib/train/checkpoint_parts.h"
#include "lib/train/train_state.h"
#include "tests/model/families.h"
#include "tests/support/memory_shard_set.h"
#include "tests/support/print_precision.h"
#include "tests/support/support.h"
#include "tests/train/tiny_training.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::CountingDocuments;
using test::kTinyVocab;
using test::MemoryShardSet;
using test::PartsOf;
using test::TemporaryFolder;
using test::TinyModel;
using test::TinyPlan;
using test::TrainingRun;

/// Threads gain nothing on tensors this small, and lose much on a busy machine.
class OneThread final : public testing::Environment {
  void SetUp() override { SetComputeThreads(1); }
};
[[maybe_unused]] const testing::Environment* const one_thread =
    testing::AddGlobalTestEnvironment(new OneThread);

/// Passes everything on to a model, but makes gradients and loss overflow while the loss scale is above a
/// limit, as fp16 does, or turns them to NaN at one step.
class OverflowingModel final : public LanguageModel {
 public:
  OverflowingModel(LanguageModel* model, double largest_gradient_scale)
      : LanguageModel(model->shared_body()), largest_gradient_scale_(largest_gradient_scale) {}
  LossSum LossAndGradients(const ModelInput& input, const GradientScale& scale) override {
    const LossSum loss = LanguageModel::LossAndGradients(input, scale);
    if (scale.factor > largest_gradient_scale_) {
      parameters().gradients()[0] = std::numeric_limits<float>::infinity();
    }
    return loss;
  }

 private:
  double largest_gradient_scale_;
};

/// Passes everything on to a model, but runs out of memory in the middle of a step whose micro-batches hold
/// more than some tokens.
class CrampedModel final : public LanguageModel {
 public:
  CrampedModel(LanguageModel* model, int64_t most_tokens)
      : LanguageModel(model->shared_body()), most_tokens_(most_tokens) {}
  LossSum LossAndGradients(const ModelInput& input, const GradientScale& scale) override {
    const LossSum loss = LanguageModel::LossAndGradients(input, scale);  // leaves gradients behind
    if (++passes > 1 && input.tokens_n.numel() > most_tokens_) throw std::bad_alloc();
    return loss;
  }
  int64_t passes = 0;

 private:
  int64_t most_tokens_;
};

at::Tensor WeightsOf(LanguageModel& model) {
  return model.parameters().values().clone();
}

double LargestDifference(const at::Tensor& a, const at::Tensor& b) {
  return a.sub(b).abs().max().item().toDouble();
}

TEST(Trainer, LearnsAPatternThatCanBeLearned) {
  const MemoryShardSet set = CountingDocuments();
  TrainingRun run(set, TinyPlan());
  const double first_nats = run.trainer.Step().loss_nats;
  EXPECT_NEAR(first_nats, std::log(kTinyVocab), 0.2) << "an untrained model knows nothing";
  double last_nats = first_nats;
  while (!run.trainer.done()) last_nats = run.trainer.Step().loss_nats;
  EXPECT_LT(last_nats, 0.2);
}

TEST(Trainer, GradientsThatAreOffloadedEndInTheSameRunBitForBit) {
  const MemoryShardSet set = CountingDocuments();
  for (const auto& [precision, states] : {std::pair(Precision::kFp32, OptimizerStates::kFp32),
                                          {Precision::kFp16, OptimizerStates::kFp32},
                                          {Precision::kBf16, OptimizerStates::kBf16}}) {
    TrainPlan plan = TinyPlan(precision);
    plan.clip = 0.3;  // most steps are clipped
    plan.optimizer.states = states;
    const TemporaryFolder folder;
    for (const bool defer : {false, true}) {
      TrainingRun kept(set, plan, defer), offloaded(set, plan, defer);
      offloaded.model->Offload({.gradients = true}, folder.path());
      for (int step = 0; step < 12; ++step) {
        const StepReport expected = kept.trainer.Step(), report = offloaded.trainer.Step();
        if (!defer) {
          EXPECT_EQ(report.grad_norm, expected.grad_norm) << step;
        }
        EXPECT_NEAR(report.grad_norm, expected.grad_norm, 1e-12 * expected.grad_norm) << step;
        EXPECT_EQ(report.skipped, expected.skipped) << step;
      }
      const TrainerState state = offloaded.trainer.state(), expected = kept.trainer.state();
      EXPECT_TRUE(at::equal(WeightsOf(*offloaded.model), WeightsOf(*kept.model)))
          << PrecisionName(precision) << ", deferred " << defer;
      for (size_t i = 0; i < expected.optimizer.size(); ++i) {
        EXPECT_TRUE(at::equal(state.optimizer[i].value, expected.optimizer[i].value)) << i;
      }
      EXPECT_GT(offloaded.model->offload_counts().out_bytes, 0);
    }
  }
}

TEST(Trainer, LossTermsSteerTheWeightsAndLeaveTheReportedLossAlone) {
  const MemoryShardSet set = CountingDocuments();
  TrainPlan plan = TinyPlan();
  TrainingRun plain(set, plan);
  plan.loss_addends = {.z_loss = 0.01, .label_smoothing = 0.1};
  TrainingRun steered(set, plan);
  const StepReport without = plain.trainer.Step(), with = steered.trainer.Step();
  EXPECT_EQ(with.loss_nats, without.loss_nats);
  EXPECT_EQ(without.term("smoothing_nats"), 0);
  EXPECT_EQ(without.term("z_loss_nats"), 0);
  // An untrained model's logits are about 0, so that Z is about the vocabulary.
  EXPECT_NEAR(with.term("z_loss_nats"), 0.01 * std::pow(std::log(kTinyVocab), 2), 0.01);
  EXPECT_NE(with.term("smoothing_nats"), 0);
  EXPECT_GT(LargestDifference(WeightsOf(*plain.model), WeightsOf(*steered.model)), 0);
}

TEST(Trainer, AStepThatRanOutOfMemoryIsTakenAgainInHalvedMicroBatchesFromTheSameSamples) {
  const MemoryShardSet set = CountingDocuments();
  for (const bool defer : {false, true}) {
    TrainPlan plan = TinyPlan();
    plan.batch = 6;
    plan.accum = 2;
    TrainPlan small = plan;
    small.batch = 1;
    small.accum = 12;
    TrainingRun expected(set, small, defer);
    const auto real =
        MakeModel(test::Families(), TinyModel(), plan.precision, at::Device(at::kCPU), plan.seed);
    CrampedModel cramped(real.get(), plan.sequence_tokens);
    SampleStream stream(&set, plan.stream_options());
    Trainer trainer(PartsOf(&cramped, &stream, plan), plan, at::Device(at::kCPU), defer);
    std::vector<int64_t> batches;
    for (int step = 0; step < 5; ++step) {
      StepReport report;
      for (bool done = false; !done;) {
        try {
          report = trainer.Step();
          done = true;
        } catch (const std::bad_alloc&) {
          ASSERT_TRUE(trainer.HalveMicroBatches());
          EXPECT_EQ(real->memory().activation_bytes, 0);
          batches.push_back(trainer.plan().batch);
          EXPECT_EQ(trainer.plan().samples_per_step(), 12);
        }
      }
      const StepReport wanted = expected.trainer.Step();
      EXPECT_EQ(report.loss_nats, wanted.loss_nats);
      EXPECT_EQ(report.tokens, wanted.tokens);
      EXPECT_EQ(report.grad_norm, wanted.grad_norm);
    }
    EXPECT_EQ(batches, (std::vector<int64_t>{3, 1}));
    EXPECT_TRUE(at::equal(WeightsOf(*real), WeightsOf(*expected.model)));
    EXPECT_EQ(trainer.state().data().cursor, expected.trainer.state().data().cursor);
    EXPECT_FALSE(trainer.HalveMicroBatches());
  }
}

TEST(Trainer, StepsOfADroppedLastNeverMixEpochs) {
  const MemoryShardSet set = CountingDocuments();
  TrainPlan plan = TinyPlan();
  plan.drop_last = true;
  plan.batch = 5;
  TrainingRun run(set, plan);
  const auto samples = static_cast<int64_t>(run.stream.CountEpoch().samples);
  const int64_t steps_an_epoch = samples / plan.samples_per_step();
  ASSERT_NE(samples % plan.samples_per_step(), 0) << "nothing would be dropped";
  ASSERT_LT(2 * steps_an_epoch, 60);
  for (int64_t step = 0; step < 2 * steps_an_epoch; ++step) run.trainer.Step();
  // The second epoch's last step is taken, its tail still lies ahead.
  EXPECT_EQ(run.stream.cursor().epoch, 1u);
  run.trainer.Step();
  EXPECT_EQ(run.stream.cursor().epoch, 2u);
}

TEST(Trainer, CountsTokensAndLabelsOfTheSamples) {
  const MemoryShardSet set = CountingDocuments();
  const TrainPlan plan = TinyPlan();
  TrainingRun run(set, plan);
  SampleStream same(&set, plan.stream_options());
  for (int step = 1; step <= 5; ++step) {
    int64_t tokens = 0, labels = 0, pairs = 0;
    for (int64_t i = 0; i < plan.samples_per_step(); ++i) {
      const Sample sample = same.Next();
      tokens += sample.tokens();
      for (const SampleSpan& span : sample.spans()) {
        labels += static_cast<int64_t>(span.tokens) - (span.next_token == kNoId ? 1 : 0);
        for (uint32_t query = 0; query < span.tokens; ++query) pairs += static_cast<int64_t>(query) + 1;
      }
    }
    const StepReport report = run.trainer.Step();
    EXPECT_EQ(report.step, step);
    EXPECT_EQ(report.tokens, tokens);
    EXPECT_EQ(report.labels, labels);
    EXPECT_EQ(report.attention_pairs, pairs);
  }
  EXPECT_EQ(run.trainer.state().data().cursor, same.cursor());
}

TEST(Trainer, AccumulatedMicroBatchesAreOneLargeBatch) {
  const MemoryShardSet set = CountingDocuments();
  TrainPlan large = TinyPlan();
  large.batch = 8;
  large.accum = 1;
  TrainingRun whole(set, large);
  std::vector<std::unique_ptr<TrainingRun>> splits;
  for (const int64_t accum : {2, 4, 8}) {
    TrainPlan plan = large;
    plan.accum = accum;
    plan.batch = 8 / accum;
    splits.push_back(std::make_unique<TrainingRun>(set, plan));
  }
  const StepReport report = whole.trainer.Step();
  for (const auto& split : splits) {
    const StepReport other = split->trainer.Step();
    EXPECT_NEAR(other.loss_nats, report.loss_nats, 1e-6);
    EXPECT_NEAR(other.grad_norm, report.grad_norm, 1e-6);
    // The gradients are compared, not the weights: AdamW's first step divides by their size and so magnifies
    // rounding of those near zero.
    EXPECT_LT(
        LargestDifference(split->model->parameters().gradients(), whole.model->parameters().gradients()),
        1e-6)
        << split->trainer.plan().accum << " micro-batches";
  }
}

/// Keeps what its passes get, and the gradients that they add.
class RecordingModel final : public LanguageModel {
 public:
  explicit RecordingModel(LanguageModel* model) : LanguageModel(model->shared_body()) {}
  LossSum LossAndGradients(const ModelInput& input, const GradientScale& scale) override {
    inputs.push_back(input);
    inputs.back().before_last_backward = {};  // it is of this step's passes
    return LanguageModel::LossAndGradients(input, scale);
  }
  std::vector<ModelInput> inputs;
};

TEST(Trainer, AStepDropsTheSameHoweverItIsSplit) {
  const MemoryShardSet set = CountingDocuments();
  TrainPlan plan = TinyPlan();
  plan.tuning.lora = LoraOptions{.rank = 2, .alpha = 4, .dropout = 0.4};
  /// Of the second step, by the ids of a sample's tokens and its place: the numbers of its rows.
  struct Step {
    std::vector<std::vector<int64_t>> rows_of_samples;
    at::Tensor gradients;
    std::vector<ModelInput> inputs;
  };
  const auto step = [&](int64_t batch, int64_t accum) {
    plan.batch = batch;
    plan.accum = accum;
    TrainingRun inner(set, plan);
    for (const Parameter& parameter : inner.model->parameters().all()) {
      if (parameter.name.ends_with("lora_B.weight")) at::Tensor(parameter.value).fill_(0.03);
    }
    inner.model->parameters().RefreshCompute();
    RecordingModel model(inner.model.get());
    SampleStream stream(&set, plan.stream_options());
    Trainer trainer(PartsOf(&model, &stream, plan), plan, at::Device(at::kCPU));
    trainer.Step();
    Step result;
    result.gradients = model.parameters().gradients().clone();
    for (const ModelInput& input : model.inputs) {
      const at::Tensor numbers = input.dropout->RowNumbers(input.tokens_n.numel());
      const auto* row = numbers.const_data_ptr<int64_t>();
      for (size_t i = 0; i < input.dropout->samples.size(); ++i) {
        const int64_t begin = input.dropout->samples[i].row, end = i + 1 < input.dropout->samples.size()
                                                                       ? input.dropout->samples[i + 1].row
                                                                       : input.tokens_n.numel();
        result.rows_of_samples.emplace_back(row + begin, row + end);
      }
    }
    result.inputs = std::move(model.inputs);
    return result;
  };
  const Step whole = step(8, 1);
  ASSERT_EQ(whole.rows_of_samples.size(), 8u);
  for (const auto& [batch, accum] : {std::pair(4, 2), std::pair(2, 4), std::pair(1, 8)}) {
    const Step split = step(batch, accum);
    EXPECT_EQ(split.rows_of_samples, whole.rows_of_samples) << accum << " micro-batches";
    EXPECT_LT(LargestDifference(split.gradients, whole.gradients), 1e-6) << accum << " micro-batches";
  }

  // As ranks that each take some of the micro-batches, and are added up in any order.
  const Step parts = step(2, 4);
  TrainingRun ranks(set, plan);
  for (const Parameter& parameter : ranks.model->parameters().all()) {
    if (parameter.name.ends_with("lora_B.weight")) at::Tensor(parameter.value).fill_(0.03);
  }
  ranks.model->parameters().RefreshCompute();
  int64_t labels = 0;
  for (const ModelInput& input : parts.inputs) labels += input.labels_n.ge(0).sum().item<int64_t>();
  for (const size_t part : {3, 1, 0, 2}) {
    ranks.model->LossAndGradients(parts.inputs[part], 1.0 / static_cast<double>(labels));
  }
  EXPECT_LT(LargestDifference(ranks.model->parameters().gradients(), whole.gradients), 1e-6);
}

TEST(Trainer, StopsAtANonFiniteLossWithTheWeightsOfTheStepBefore) {
  const MemoryShardSet set = CountingDocuments();
  const TrainPlan plan = TinyPlan();
  TrainingRun inner(set, plan);
  OverflowingModel model(inner.model.get(), 0);
  SampleStream stream(&set, plan.stream_options());
  Trainer trainer(PartsOf(&model, &stream, plan), plan, at::Device(at::kCPU));
  const at::Tensor before = WeightsOf(model);
  const std::string message = test::MessageOf([&] { trainer.Step(); });
  EXPECT_EQ(CodeOf([&] { trainer.Step(); }), ErrorCode::kNonFinite);
  EXPECT_NE(message.find("step 1"), std::string::npos) << message;
  EXPECT_TRUE(at::equal(WeightsOf(model), before));
}

TEST(Trainer, SkipsOverflowingStepsUnderFp16UntilTheScaleFits) {
  const MemoryShardSet set = CountingDocuments();
  const TrainPlan plan = TinyPlan(Precision::kFp16);
  TrainingRun inner(set, plan);
  // A step has about 60 labels: gradient_scale = loss scale / labels, so scales of 2^10 and above overflow.
  OverflowingModel model(inner.model.get(), 1000.0 / 60);
  SampleStream stream(&set, plan.stream_options());
  Trainer trainer(PartsOf(&model, &stream, plan), plan, at::Device(at::kCPU));
  const at::Tensor before = WeightsOf(model);
  double expected_scale = LossScaler(true).scale();
  StepReport report = trainer.Step();
  int skipped = 0;
  while (report.skipped) {
    ++skipped;
    EXPECT_EQ(report.loss_scale, expected_scale);
    EXPECT_TRUE(at::equal(WeightsOf(model), before)) << "a skipped step leaves the weights";
    expected_scale /= 2;
    ASSERT_LT(skipped, 30);
    report = trainer.Step();
  }
  EXPECT_GE(skipped, 3);
  EXPECT_EQ(report.loss_scale, expected_scale);
  EXPECT_FALSE(at::equal(WeightsOf(model), before));
  EXPECT_EQ(trainer.state().updates, 1) << "bias correction counts updates, not steps";
  EXPECT_EQ(trainer.step(), skipped + 1);
}

TEST(Trainer, GivesUpWhenFp16OverflowsAtScaleOne) {
  const MemoryShardSet set = CountingDocuments();
  const TrainPlan plan = TinyPlan(Precision::kFp16);
  TrainingRun inner(set, plan);
  OverflowingModel model(inner.model.get(), 0);
  SampleStream stream(&set, plan.stream_options());
  Trainer trainer(PartsOf(&model, &stream, plan), plan, at::Device(at::kCPU));
  std::optional<ErrorCode> code;
  for (int step = 0; step < 100 && !code; ++step) code = CodeOf([&] { trainer.Step(); });
  EXPECT_EQ(code, ErrorCode::kNonFinite);
}

/// The first eight chunks hold single-token documents only; shuffling is by chunk, so a sample of one of them
/// has no label.
MemoryShardSet OneChunkWithALabel() {
  std::vector<Chunk> chunks(8, Chunk{.segments = {{.tokens = 1}}, .tokens = {1}});
  chunks.push_back({.segments = {{.tokens = 2}}, .tokens = {1, 2}});
  return MemoryShardSet(std::move(chunks), 1, kTinyVocab);
}

TEST(Trainer, LeavesTheWeightsWhenAStepHoldsNoLabel) {
  const MemoryShardSet set = OneChunkWithALabel();
  TrainPlan plan = TinyPlan();
  plan.batch = plan.accum = 1;
  TrainingRun run(set, plan);
  int skipped = 0;
  for (int step = 0; step < 9; ++step) {
    const at::Tensor before = WeightsOf(*run.model);
    const StepReport report = run.trainer.Step();
    EXPECT_EQ(report.skipped, report.labels == 0);
    EXPECT_EQ(at::equal(WeightsOf(*run.model), before), report.skipped);
    skipped += report.skipped ? 1 : 0;
  }
  EXPECT_EQ(skipped, 8);
}

TEST(Trainer, AStepThatHoldsNoLabelReportsNoLoss) {
  const MemoryShardSet set = OneChunkWithALabel();
  TrainPlan plan = TinyPlan();
  plan.batch = plan.accum = 1;
  for (const bool defer : {false, true}) {
    TrainingRun run(set, plan, defer);
    for (int step = 0; step < 9; ++step) {
      const StepReport report = run.trainer.Step();
      EXPECT_EQ(std::isnan(report.loss_nats), report.labels == 0);
      EXPECT_EQ(std::isnan(report.term("z_loss_nats")), report.labels == 0);
    }
  }
}

/// Passes everything on to a model, and forgets to free a little at each step.
class LeakingModel final : public LanguageModel {
 public:
  explicit LeakingModel(LanguageModel* model) : LanguageModel(model->shared_body()) {}
  LossSum LossAndGradients(const ModelInput& input, const GradientScale& scale) override {
    leaked_.push_back(at::zeros({4096}));
    return LanguageModel::LossAndGradients(input, scale);
  }

 private:
  std::vector<at::Tensor> leaked_;
};

/// What resident memory grows by from the third step to the 203rd.
int64_t GrowthOverSteps(Trainer* trainer) {
  malloc_trim(0);  // what earlier tests have freed would hide a leak
  while (trainer->step() < 3) trainer->Step();
  const int64_t before_bytes = ResidentBytes();
  while (trainer->step() < 203) trainer->Step();
  return ResidentBytes() - before_bytes;
}

TEST(Trainer, StepsDoNotGrowMemory) {
  constexpr int64_t kSlackBytes = 2 << 20;
  const MemoryShardSet set = CountingDocuments();
  TrainPlan plan = TinyPlan();
  plan.schedule.total_steps = 400;
  TrainingRun run(set, plan);
  EXPECT_LT(GrowthOverSteps(&run.trainer), kSlackBytes);

  // 16 KiB for each of 400 micro-batches would have been seen.
  TrainingRun inner(set, plan);
  LeakingModel model(inner.model.get());
  SampleStream stream(&set, plan.stream_options());
  Trainer leaking(PartsOf(&model, &stream, plan), plan, at::Device(at::kCPU));
  EXPECT_GT(GrowthOverSteps(&leaking), kSlackBytes);
}

TEST(Trainer, NothingRequiresGradientsSoNoAutogradGraphIsBuilt) {
  const MemoryShardSet set = CountingDocuments();
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    TrainingRun run(set, TinyPlan(precision));
    run.trainer.Step();
    for (const Parameter& parameter : run.model->parameters().all()) {
      for (const at::Tensor& tensor : {parameter.value, parameter.gradient, parameter.compute}) {
        EXPECT_FALSE(tensor.requires_grad()) << parameter.name;
      }
    }
    PackedBatch batch;
    run.stream.Next().AppendTo(&batch);
    // What is computed from a tensor that requires gradients requires them, too.
    EXPECT_FALSE(run.model->Logits(ToModelInput(batch)).requires_grad());
    for (const OptimizerState& state : run.trainer.state().optimizer) {
      EXPECT_FALSE(state.value.requires_grad()) << state.name;
    }
  }
}

/// What a resumed run is compared by.
std::string HashOf(LanguageModel& model) {
  const at::Tensor weights = WeightsOf(model);
  return HexEncode(Sha256Of({static_cast<const uint8_t*>(weights.const_data_ptr()), weights.nbytes()}));
}

TEST(Trainer, MomentsInBf16LearnAsFp32OnesDoInHalfTheMemory) {
  const MemoryShardSet set = CountingDocuments();
  TrainPlan plan = TinyPlan();
  std::vector<double> mean_loss;
  std::vector<int64_t> bytes;
  for (const OptimizerStates states : {OptimizerStates::kFp32, OptimizerStates::kBf16}) {
    plan.optimizer.states = states;
    TrainingRun run(set, plan);
    double sum = 0;
    while (!run.trainer.done()) {
      const double loss = run.trainer.Step().loss_nats;
      if (run.trainer.step() > 40) sum += loss / 20;
    }
    mean_loss.push_back(sum);
    bytes.push_back(run.trainer.optimizer().state_bytes());
  }
  EXPECT_NEAR(mean_loss[1], mean_loss[0], 0.03 * mean_loss[0]);
  EXPECT_EQ(2 * bytes[1], bytes[0]);
}

// The step of one that keeps its numbers where they are reads number, divisor and verdict from tensors.
TEST(Trainer, MomentsInBf16AreTheSameWhereTheStepIsDecidedOnTheDevice) {
  const MemoryShardSet set = CountingDocuments();
  TrainPlan plan = TinyPlan();
  plan.clip = 0;
  plan.optimizer.states = OptimizerStates::kBf16;
  TrainingRun here(set, plan), there(set, plan, /*defer=*/true);
  for (int step = 0; step < 5; ++step) here.trainer.Step(), there.trainer.Step();
  EXPECT_EQ(HashOf(*here.model), HashOf(*there.model));
}

/// The fp16 runs overflow above a scale of 2^9, so that the loss scale, too, has a history to lose.
struct Stored {
  Precision precision;
  OptimizerStates states;
};

class ResumeTest : public testing::TestWithParam<Stored> {
 protected:
  static constexpr int kSteps = 24, kStop = 15;

  struct Model {
    explicit Model(const TrainPlan& plan)
        : real(MakeModel(test::Families(), TinyModel(), plan.precision, at::Device(at::kCPU), plan.seed)),
          overflowing(real.get(), 600.0 / 60) {}
    LanguageModel* get() { return real_scale ? &overflowing : real.get(); }
    std::unique_ptr<LanguageModel> real;
    OverflowingModel overflowing;
    bool real_scale = GetParam().precision == Precision::kFp16;
  };

  using Tamper = std::function<void(TrainState*, FlatParameters*)>;

  /// Runs to kStop, saves, and continues in new objects with what was saved after `tamper` had it.
  std::string HashWithAStop(const Tamper& tamper) {
    const TemporaryFolder folder;
    RunDirectory run(folder.path("run"));
    std::string checkpoint;
    {
      Model model(plan);
      SampleStream stream(&set, plan.stream_options());
      Trainer trainer(PartsOf(model.get(), &stream, plan), plan, at::Device(at::kCPU));
      while (trainer.step() < kStop) trainer.Step();
      TrainState state;
      state.plan = plan;
      state.trainer = trainer.state();
      state.layout = DescribeLayout(model.get()->parameters());
      const CheckpointContent content =
          DescribeCheckpoint(*model.get(), {}, set.header().tokenizer, state, {});
      checkpoint = WriteCheckpoint(&run, content).path;
    }
    VerifyCheckpoint(checkpoint);
    TrainState state = ReadTrainState(checkpoint + "/" + kStateFileName);
    Model model(plan);
    FlatParameters& weights = model.get()->parameters();
    LoadWeights(checkpoint, &weights);
    tamper(&state, &weights);
    weights.RefreshCompute();
    SampleStream stream(&set, state.plan.stream_options());
    Trainer trainer(PartsOf(model.get(), &stream, state.plan), state.plan, at::Device(at::kCPU));
    // The order of a tampered seed is another, of which the state says nothing yet.
    state.trainer.data().order_fingerprint = stream.fingerprint();
    trainer.Restore(state.trainer);
    while (trainer.step() < kSteps) trainer.Step();
    return HashOf(*model.get());
  }

  std::string HashWithoutAStop() {
    Model model(plan);
    SampleStream stream(&set, plan.stream_options());
    Trainer trainer(PartsOf(model.get(), &stream, plan), plan, at::Device(at::kCPU));
    while (trainer.step() < kSteps) trainer.Step();
    return HashOf(*model.get());
  }

  const MemoryShardSet set = CountingDocuments();
  const TrainPlan plan = [] {
    TrainPlan plan = TinyPlan(GetParam().precision);
    plan.optimizer.states = GetParam().states;
    return plan;
  }();
};

TEST_P(ResumeTest, ContinuesBitForBit) {
  EXPECT_EQ(HashWithAStop([](TrainState*, FlatParameters*) {}), HashWithoutAStop());
}

/// Each part of the state matters: without it, or with another value, the test above would fail.
TEST_P(ResumeTest, NoticesEachPartThatIsFalse) {
  const std::string undisturbed = HashWithoutAStop();
  struct Part {
    const char* name;
    bool matters_under_fp16_only;
    Tamper tamper;
  };
  const Part parts[] = {
      {"weights of one tensor", false, [](auto*, auto* weights) { (*weights)[1].value.mul_(1.01); }},
      {"first moments", false, [](auto* state, auto*) { state->trainer.optimizer_state("exp_avg").zero_(); }},
      {"first moments of one tensor", false,
       [](auto* state, auto* weights) {
         state->trainer.optimizer_state("exp_avg")
             .narrow(0, (*weights)[1].offset, (*weights)[1].size)
             .zero_();
       }},
      {"second moments", false,
       [](auto* state, auto*) { state->trainer.optimizer_state("exp_avg_sq").fill_(1e-3); }},
      {"step", false, [](auto* state, auto*) { state->trainer.step -= 1; }},
      {"updates", false, [](auto* state, auto*) { state->trainer.updates -= 1; }},
      {"cursor: epoch", false, [](auto* state, auto*) { state->trainer.data().cursor.epoch += 1; }},
      {"cursor: window", false,
       [](auto* state, auto*) {
         uint64_t& window = state->trainer.data().cursor.window;
         window = window == 0 ? 1 : 0;
       }},
      {"cursor: sample", false,
       [](auto* state, auto*) {
         uint64_t& sample = state->trainer.data().cursor.sample;
         sample += sample == 0 ? 1 : -1;
       }},
      {"seed of the order", false, [](auto* state, auto*) { state->plan.seed += 1; }},
      {"schedule", false, [](auto* state, auto*) { state->plan.schedule.total_steps += 1; }},
      {"loss scale", true, [](auto* state, auto*) { state->trainer.scaler = LossScaler(true).state(); }},
      {"good steps of the loss scaler", true,
       [](auto* state, auto*) { state->trainer.scaler.good_steps = 1998; }},
  };
  for (const Part& part : parts) {
    const bool matters = !part.matters_under_fp16_only || GetParam().precision == Precision::kFp16;
    EXPECT_EQ(HashWithAStop(part.tamper) != undisturbed, matters) << part.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, ResumeTest,
                         testing::Values(Stored{Precision::kFp32, OptimizerStates::kFp32},
                                         Stored{Precision::kBf16, OptimizerStates::kFp32},
                                         Stored{Precision::kFp16, OptimizerStates::kFp32},
                                         Stored{Precision::kFp32, OptimizerStates::kBf16},
                                         Stored{Precision::kBf16, OptimizerStates::kBf16}),
                         [](const auto& info) {
                           return PrecisionName(info.param.precision) + "_states_" +
                                  OptimizerStatesName(info.param.states);
                         });

}  // namespace
}  // namespace trainwright
