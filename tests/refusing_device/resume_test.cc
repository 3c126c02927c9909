// Checkpoints of runs on the device that refuses the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "lib/checkpoint/checkpoint.h"
#include "lib/model/weights_io.h"
#include "lib/run/metrics_log.h"
#include "lib/run/run_directory.h"
#include "lib/run/run_record.h"
#include "lib/spec/product_choices.h"
#include "lib/train/checkpoint_parts.h"
#include "lib/train/train_job.h"
#include "lib/train/train_state.h"
#include "tests/refusing_device/device_run.h"
#include "tests/support/refusing_device/refusing_device.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CountsOfDevice;
using test::DeviceRun;
using test::DeviceRunSetup;
using test::kRefusingDevice;
using test::TemporaryFolder;
using testing::IsEmpty;

class DeviceResumeTest : public testing::Test {
 protected:
  std::string Save(const DeviceRunSetup& setup, DeviceRun* run) {
    RunDirectory directory(folder_.path("run"));
    TrainState state;
    state.plan = setup.plan;
    state.trainer = run->trainer.state();
    state.layout = DescribeLayout(run->model->parameters());
    return WriteCheckpoint(&directory,
                           DescribeCheckpoint(*run->model, {}, set_.header().tokenizer, state, {}))
        .path;
  }
  at::Tensor WeightsAfterAStop(const DeviceRunSetup& setup) {
    std::string checkpoint;
    {
      DeviceRun run(set_, setup, kRefusingDevice);
      while (run.trainer.step() < stop_) run.trainer.Step(/*read=*/false);
      checkpoint = Save(setup, &run);
    }
    const TrainState state = ReadTrainState(checkpoint + "/" + kStateFileName);
    const uint64_t other_seed = setup.plan.seed + 1;  // other weights than those that are read
    const auto model =
        MakeModel(test::Families(), setup.model, setup.plan.precision, kRefusingDevice, other_seed);
    LoadWeights(checkpoint, &model->parameters());
    model->parameters().RefreshCompute();
    SampleStream stream(&set_, setup.plan.stream_options());
    Trainer trainer(test::PartsOf(model.get(), &stream, setup.plan), setup.plan, kRefusingDevice);
    trainer.Restore(state.trainer);
    while (trainer.step() < steps_) trainer.Step(/*read=*/false);
    trainer.Look();
    return test::HostWeights(*model);
  }
  at::Tensor WeightsWithoutAStop(const DeviceRunSetup& setup) const {
    DeviceRun run(set_, setup, kRefusingDevice);
    while (run.trainer.step() < steps_) run.trainer.Step();
    return run.Weights();
  }

  int steps_ = 6, stop_ = 3;
  std::optional<test::CpuKernels> quick_{std::in_place};
  const TemporaryFolder folder_;
  const test::MemoryShardSet set_ = test::CountingDocuments();
};

TEST_F(DeviceResumeTest, ARunGoesOnFromItsFilesBitForBit) {
  for (const test::NamedModel& model : test::DeviceModels()) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      const DeviceRunSetup setup = {.model = model.config, .plan = test::TinyPlan(precision)};
      EXPECT_TRUE(WeightsAfterAStop(setup).equal(WeightsWithoutAStop(setup)))
          << model.name << " " << PrecisionName(precision);
      std::filesystem::remove_all(folder_.path("run"));
    }
  }
}

TEST_F(DeviceResumeTest, ARunOnTheKernelsOfTheCudaSourcesGoesOnBitForBit) {
  quick_.reset();
  steps_ = 2;
  stop_ = 1;
  for (const test::NamedModel& model : test::DeviceModels()) {
    const DeviceRunSetup setup = {.model = model.config, .plan = test::TinyPlan(Precision::kBf16)};
    EXPECT_TRUE(WeightsAfterAStop(setup).equal(WeightsWithoutAStop(setup))) << model.name;
    std::filesystem::remove_all(folder_.path("run"));
  }
}

/// `train` from settings to exit status, with shards that pretokenize and pack made.
class DeviceJob : public testing::Test {
 protected:
  DeviceJob() {
    std::string text;
    for (int line = 0; line < 60; ++line) text += "abcdefgh " + std::to_string(line) + " abcdefgh\n";
    test::WriteFile(folder_.path("in.txt"), text);
    const test::ProcessResult made =
        test::RunShell("cd '" + folder_.path() + "' && pretokenize -q in.txt | pack -q --chunk 64 -o shards");
    EXPECT_EQ(made.exit_status, 0) << made.standard_error;
    test::WriteFile(
        folder_.path("model.json"),
        R"({"model_type":"llama","vocab_size":258,"hidden_size":32,"num_hidden_layers":2,)"
        R"("intermediate_size":48,"num_attention_heads":4,"num_key_value_heads":2,"max_position_embeddings":64})");
    settings_.model = folder_.path("model.json");
    settings_.data = {folder_.path("shards")};
    settings_.eval_data = {folder_.path("shards")};
    settings_.out = folder_.path("run");
    settings_.steps = 12;
    settings_.batch = 2;
    settings_.accum = 2;
    settings_.seq = 32;
    settings_.lr = 1e-2;
    settings_.log_every = 4;
    settings_.eval_every = 6;
    settings_.save_every = "6";
    settings_.mixed_precision = "bf16";
  }
  void Train(c10::Device device = kRefusingDevice, std::optional<int64_t> memory_cap_bytes = {}) const {
    nlohmann::ordered_json summary;
    const TrainJobContext context = {
        .families = test::Families(),
        .process = {.threads = 1, .device = device, .memory_cap_bytes = memory_cap_bytes},
        .progress = ProgressMode::kNever,
        .optimizers = BuiltInOptimizers(),
        .objectives = BuiltInObjectives()};
    EXPECT_EQ(RunTraining(settings_, context, &summary), 0);
  }
  std::string Weights() const { return test::ReadFile(settings_.out + "/latest/model.safetensors"); }
  std::vector<double> Losses(const std::string& type) const {
    std::vector<double> losses;
    ForEachMetricsRecord(settings_.out + "/metrics.jsonl", [&](const nlohmann::ordered_json& record) {
      if (record["type"] == type) losses.push_back(record["loss_nats"]);
    });
    return losses;
  }

  const TemporaryFolder folder_;
  TrainSettings settings_;
};

class DeviceJobTest : public DeviceJob {
 protected:
  const test::CpuKernels quick_;
};

TEST_F(DeviceJobTest, TrainsEvaluatesSavesAndLearnsAsOnTheCpu) {
  Train();
  const std::vector<double> losses = Losses("step"), evaluated = Losses("eval");
  EXPECT_THAT(CountsOfDevice().violations, IsEmpty());
  settings_.out = folder_.path("here");
  Train(test::kCpu);
  EXPECT_THAT(losses, testing::Pointwise(testing::DoubleNear(2e-2), Losses("step")));
  EXPECT_THAT(evaluated, testing::Pointwise(testing::DoubleNear(2e-2), Losses("eval")));
  EXPECT_LT(evaluated.back(), evaluated.front() - 0.5);
}

TEST_F(DeviceJobTest, AStepThatIsNotLoggedAddsNoWait) {
  const auto waits = [&](int64_t steps, const std::string& out) {
    settings_.steps = steps;
    settings_.log_every = 1000;
    settings_.eval_every = 0;
    settings_.save_every = "1000";
    settings_.out = folder_.path(out);
    test::ResetDeviceCounts();
    Train();
    return CountsOfDevice().waits;
  };
  EXPECT_EQ(waits(30, "longer"), waits(10, "shorter"));
}

TEST_F(DeviceJobTest, AResumedRunIsTheSameRun) {
  settings_.deterministic = true;  // no clock decides
  Train();
  const std::string whole = Weights();
  settings_.out = folder_.path("stopped");
  settings_.max_minutes = 1e-9;
  Train();
  EXPECT_FALSE(std::filesystem::exists(settings_.out + "/checkpoints/step-00000012"));
  settings_.max_minutes = 0;
  settings_.resume = true;
  Train();
  EXPECT_EQ(Weights(), whole);
}

TEST_F(DeviceJobTest, AMicroBatchThatNobodyChoseFitsIntoTheGpusMemory) {
  settings_.batch.reset();
  settings_.accum.reset();
  settings_.steps = 1;
  settings_.eval_data.clear();
  settings_.eval_every.reset();
  constexpr int64_t kUsualSamples = 16384 / 32;
  Train(kRefusingDevice, /*memory_cap_bytes=*/int64_t{12} << 20);
  const TrainPlan plan = ReadTrainState(settings_.out + "/latest/" + kStateFileName).plan;
  EXPECT_LT(plan.batch, kUsualSamples);
  EXPECT_EQ(plan.samples_per_step(), kUsualSamples);
}

TEST_F(DeviceJobTest, KeepsWhatItChoseByItsDevice) {
  const auto chosen = [&] {
    return nlohmann::ordered_json::parse(test::ReadFile(settings_.out + "/run.json")).at("device_choices");
  };
  settings_.max_minutes = 1e-9;
  Train();
  const nlohmann::ordered_json first = chosen();
  EXPECT_EQ(first.at("head_slice_logits"), int64_t{1} << 25);  // nobody tells how much memory is free
  EXPECT_THAT(first.at("attention").get<std::string>(), testing::AnyOf("cudnn", "flash"));
  EXPECT_GT(first.at("attention_s").at("cudnn").get<double>(), 0);
  EXPECT_GT(first.at("attention_s").at("flash").get<double>(), 0);
  settings_.max_minutes = 0;
  settings_.resume = true;
  Train();
  EXPECT_EQ(chosen(), first);  // nothing was timed again
  const TrainState state =
      ReadTrainState(settings_.out + "/checkpoints/step-00000012/" + std::string(kStateFileName));
  EXPECT_EQ(state.compute.choices.head_slice_logits, first.at("head_slice_logits"));
  EXPECT_EQ(state.compute.choices.attention, first.at("attention"));
  EXPECT_THAT(state.compute.choices.attention_times, IsEmpty());  // equal runs write equal bytes
}

/// Whose fp32 GEMMs are the CPU's: in TF32 they are no others.
TEST_F(DeviceJobTest, TellsTheErrorOfTf32WhereItIsAskedFor) {
  const auto begin = [&] {
    nlohmann::ordered_json first;
    ForEachMetricsRecord(settings_.out + "/metrics.jsonl", [&](const nlohmann::ordered_json& record) {
      if (record["type"] == "run_begin") first = record;
    });
    return first;
  };
  settings_.steps = 1;
  settings_.mixed_precision = "no";
  Train();
  EXPECT_EQ(begin()["tf32"], false);
  EXPECT_FALSE(begin().contains("tf32_error"));
  settings_.tf32 = "on";
  settings_.out = folder_.path("tf32");
  testing::internal::CaptureStderr();
  Train();
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      testing::HasSubstr("TF32: fp32 GEMMs differ from fp32 by 0.0e+00 of their size, of 256 x 32 x 256"));
  EXPECT_EQ(begin()["tf32"], true);
  EXPECT_EQ(begin()["tf32_error"], 0.0);
}

TEST_F(DeviceJobTest, ChoosesNoAttentionWhereOneIsAskedFor) {
  settings_.attn_backend = "flash";
  settings_.steps = 1;
  Train();
  const auto record = nlohmann::ordered_json::parse(test::ReadFile(settings_.out + "/run.json"));
  EXPECT_FALSE(record.at("device_choices").contains("attention"));
}

/// A model whose products have biases and GELUs within them, by the seam towards cuBLASLt that the host has.
class DeviceProductsTest : public DeviceJob {
 protected:
  DeviceProductsTest() {
    test::WriteFile(
        folder_.path("model.json"),
        R"({"model_type":"gpt2","vocab_size":258,"n_embd":16,"n_layer":1,"n_inner":24,"n_head":2,)"
        R"("n_positions":64,"activation_function":"gelu_new"})");
    // Micro-batches as full as those that kernels are tried on.
    const test::ProcessResult made = test::RunShell(
        "cd '" + folder_.path() + "' && pretokenize -q in.txt | pack -q --mode concat --chunk 32 -o full");
    EXPECT_EQ(made.exit_status, 0) << made.standard_error;
    settings_.data = {folder_.path("full")};
    settings_.eval_data.clear();
    settings_.eval_every.reset();
    settings_.steps = 4;
    settings_.save_every = "2";
    settings_.batch = settings_.accum = 1;
  }
  std::string RecordFile() const { return settings_.out + "/" + kRunRecordFile; }
  /// In the run's directory.
  DeviceChoices Stored() const { return ReadRunRecord(RecordFile())->choices; }
  /// All of one number, as another run might have chosen.
  void Store(int64_t candidate) const {
    DeviceChoices choices = Stored();
    EXPECT_FALSE(choices.products.empty());
    for (auto& [product, chosen] : choices.products) chosen = candidate;
    StoreDeviceChoices(RecordFile(), choices);
  }
  void StoreNone() const {
    DeviceChoices choices = Stored();
    choices.products.clear();
    StoreDeviceChoices(RecordFile(), choices);
  }
  ProductChoices ChosenInState() const {
    return ReadTrainState(settings_.out + "/latest/" + kStateFileName).compute.choices.products;
  }
  /// Trains to the first checkpoint.
  void Begin(const std::string& out) {
    settings_.out = folder_.path(out);
    settings_.max_minutes = 1e-9;
    settings_.resume = false;
    Train();
  }
  /// The directory of a run, as "copy".
  void Copy(const std::string& run) const {
    using Options = std::filesystem::copy_options;
    std::filesystem::copy(folder_.path(run), folder_.path("copy"),
                          Options::recursive | Options::copy_symlinks);
  }
  /// \returns the weights at the end
  std::string GoOn() {
    settings_.max_minutes = 0;
    settings_.resume = true;
    Train();
    return Weights();
  }
};

TEST_F(DeviceProductsTest, KernelsAreChosenOnceAndAResumedRunHasTheSame) {
  Begin("run");
  const ProductChoices chosen = Stored().products;
  EXPECT_TRUE(chosen.contains("linear_with_gelu bf16 32x16x24"));
  Copy("run");
  const std::string weights = GoOn();
  EXPECT_EQ(Stored().products, chosen);
  settings_.out = folder_.path("copy");
  EXPECT_EQ(GoOn(), weights);
}

TEST_F(DeviceProductsTest, KernelsOfGemmsWithNothingBeforeOrAfterThemAreChosenToo) {
  test::WriteFile(folder_.path("model.json"),
                  R"({"model_type":"llama","vocab_size":258,"hidden_size":16,"num_hidden_layers":1,)"
                  R"("intermediate_size":32,"num_attention_heads":2,"max_position_embeddings":64})");
  Begin("llama");
  const ProductChoices chosen = Stored().products;
  EXPECT_TRUE(chosen.contains("matmul bf16->bf16 nt 32x16x48"));   // queries, keys and values
  EXPECT_TRUE(chosen.contains("matmul bf16->bf16 nn 32x48x16"));   // the gradient of what they read
  EXPECT_TRUE(chosen.contains("matmul bf16->fp32 tn 48x32x16"));   // and of their weights
  EXPECT_TRUE(chosen.contains("matmul bf16->bf16 nt 32x16x384"));  // the head, padded
  EXPECT_EQ(ChosenInState(), chosen);
  Copy("llama");
  Store(0);
  const std::string with_torchs = GoOn();
  settings_.out = folder_.path("copy");
  Store(2);  // whose sums have another order
  EXPECT_FALSE(GoOn() == with_torchs);
}

TEST_F(DeviceProductsTest, KernelsOfGemmsInFp8AreChosenToo) {
  test::WriteFile(folder_.path("model.json"),
                  R"({"model_type":"gpt2","vocab_size":258,"n_embd":16,"n_layer":1,"n_inner":32,"n_head":2,)"
                  R"("n_positions":64,"activation_function":"gelu_new"})");
  settings_.fp8 = "mlp+head";
  Begin("fp8");
  const ProductChoices chosen = Stored().products;
  EXPECT_TRUE(chosen.contains("fp8_product e4m3*e4m3->bf16 32x16x32"));  // the MLP's first layer
  EXPECT_TRUE(chosen.contains("fp8_product e5m2*e4m3->fp32 32x32x16"));  // the gradient of its weights
  EXPECT_EQ(ChosenInState(), chosen);
}

TEST_F(DeviceProductsTest, AResumedRunComputesWithTheStoredKernels) {
  Begin("run");
  Copy("run");
  Store(0);
  const std::string with_the_first = GoOn();
  settings_.out = folder_.path("copy");
  Store(1);  // whose sums have another order
  EXPECT_FALSE(GoOn() == with_the_first);
  EXPECT_EQ(ChosenInState(), Stored().products);
}

TEST_F(DeviceProductsTest, ARunOfBeforeGoesOnWithTheKernelsThatItHadInAFileOfTheirOwn) {
  Begin("run");
  Copy("run");
  Store(1);
  const ProductChoices chosen = Stored().products;
  const std::string weights = GoOn();
  settings_.out = folder_.path("copy");
  StoreNone();
  test::WriteFile(settings_.out + "/" + kProductChoicesFile, EncodeProductChoices(chosen));
  EXPECT_EQ(GoOn(), weights);
  EXPECT_EQ(Stored().products, chosen);
}

TEST_F(DeviceProductsTest, WithoutItsFileARunHasTheKernelsOfItsState) {
  Begin("run");
  const ProductChoices chosen = Stored().products;
  EXPECT_FALSE(chosen.empty());
  StoreNone();
  GoOn();
  EXPECT_FALSE(std::filesystem::exists(settings_.out + "/" + kProductChoicesFile));
  EXPECT_EQ(ChosenInState(), chosen);
}

TEST_F(DeviceProductsTest, KernelsOfARunWithAdaptersAreChosenToo) {
  settings_.lora = 2;
  Begin("adapters");
  const ProductChoices chosen = Stored().products;
  EXPECT_TRUE(chosen.contains("matmul bf16->bf16 nt 32x16x24"));   // the MLP's first layer
  EXPECT_TRUE(chosen.contains("matmul bf16->bf16 nn 32x24x16"));   // the gradient of what it reads
  EXPECT_FALSE(chosen.contains("matmul bf16->fp32 tn 24x32x16"));  // its weights are frozen
  EXPECT_EQ(ChosenInState(), chosen);
}

TEST_F(DeviceProductsTest, KernelsOfARunWithAFrozenHeadAreChosenToo) {
  settings_.freeze = "wte.weight";  // which is the head
  Begin("frozen");
  EXPECT_TRUE(Stored().products.contains("linear_with_gelu bf16 32x16x24"));
}

TEST_F(DeviceProductsTest, KernelsAreChosenWhereMicroBatchesMayBeHalvedToo) {
  settings_.auto_oom = true;
  Begin("halving");
  EXPECT_TRUE(Stored().products.contains("linear_with_gelu bf16 32x16x24"));
}

TEST_F(DeviceProductsTest, DeterministicRunsTryNothing) {
  settings_.deterministic = true;
  settings_.steps = 1;
  Train();
  EXPECT_TRUE(Stored().products.empty());
  EXPECT_FALSE(std::filesystem::exists(settings_.out + "/" + kProductChoicesFile));
}

TEST_F(DeviceJobTest, WritesInTheBackgroundWhatItWritesInTheForeground) {
  settings_.deterministic = true;  // no clock decides
  settings_.async_save = "off";
  Train();
  const std::string weights = Weights();
  settings_.async_save = "on";
  settings_.out = folder_.path("background");
  Train();
  EXPECT_EQ(Weights(), weights);
}

}  // namespace
}  // namespace trainwright
