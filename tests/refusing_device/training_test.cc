// Whole training steps on the device that refuses the host: what they compute is the CPU's, and between two
// looks at the numbers nobody waits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/model/inputs.h"
#include "tests/refusing_device/device_run.h"
#include "tests/support/cuda_emulation/host_product.h"
#include "tests/support/print_precision.h"
#include "tests/support/refusing_device/refusing_device.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CountingDocuments;
using test::CountsOfDevice;
using test::DeviceRun;
using test::DeviceRunSetup;
using test::kCpu;
using test::kRefusingDevice;
using test::MemoryShardSet;
using test::NamedModel;
using test::RelativeDifference;
using test::TinyPlan;
using testing::IsEmpty;

constexpr int kSteps = 3;

/// How far a device's numbers may be from the CPU's: the order of sums, and in bf16 where values are rounded.
struct Tolerances {
  double loss, gradients, weights;  ///< relative; weights': of how far three steps moved them
};
Tolerances TolerancesOf(Precision precision) {
  return precision == Precision::kFp32 ? Tolerances{1e-5, 1e-4, 1e-2} : Tolerances{1e-2, 3e-2, 0.2};
}

/// Of some documents, on the host.
at::Tensor GradientsOf(LanguageModel* model) {
  model->parameters().ZeroGradients();
  model->LossAndGradients(test::RandomInput(model->config(), {15, 4, 16}), 1.0 / 32);
  return model->parameters().gradients().to(at::kCPU);
}

class DeviceTrainingTest : public testing::Test {
 protected:
  DeviceTrainingTest() { test::ResetDeviceCounts(); }
  ~DeviceTrainingTest() override { EXPECT_THAT(CountsOfDevice().violations, IsEmpty()); }

  /// \param max_tokens that are evaluated; 0: all
  void ExpectEvaluationOfTheCpu(uint64_t max_tokens) const {
    const EvaluationOptions options = {.sequence_tokens = 16, .batch_tokens = 64, .max_tokens = max_tokens};
    for (const NamedModel& model : test::DeviceModels()) {
      const DeviceRunSetup setup = {.model = model.config};
      DeviceRun here(set_, setup, kCpu), there(set_, setup, kRefusingDevice);
      const double expected = here.trainer.objective().Evaluate(here.model.get(), set_, options).loss_nats,
                   nats = there.trainer.objective().Evaluate(there.model.get(), set_, options).loss_nats;
      EXPECT_NEAR(nats, expected, 1e-5 * expected) << model.name;
    }
  }
  /// Takes kSteps steps here and there; gradients, each loss and norm and the last weights are the CPU's.
  void TrainsLikeTheCpu(const DeviceRunSetup& setup) const {
    DeviceRunSetup on_cpu = setup;
    on_cpu.kinds.equal_spans = AttentionBackend::kAuto;  // a library's is no CPU's
    DeviceRun here(set_, on_cpu, kCpu), there(set_, setup, kRefusingDevice);
    const at::Tensor start = here.Weights();
    ASSERT_TRUE(there.Weights().equal(start));
    const Tolerances tolerances = TolerancesOf(setup.plan.precision);
    if (!setup.offload.gradients) {
      EXPECT_LT(RelativeDifference(GradientsOf(there.model.get()), GradientsOf(here.model.get())),
                tolerances.gradients);
    }
    for (int step = 1; step <= kSteps; ++step) {
      const StepReport expected = here.trainer.Step(), report = there.trainer.Step();
      EXPECT_NEAR(report.loss_nats, expected.loss_nats, tolerances.loss * expected.loss_nats) << step;
      EXPECT_NEAR(report.grad_norm, expected.grad_norm, tolerances.gradients * expected.grad_norm) << step;
    }
    const at::Tensor expected = here.Weights();
    EXPECT_LT(there.Weights().sub(expected).norm().item<double>(),
              tolerances.weights * expected.sub(start).norm().item<double>());
  }
  void NeverWaitsBetweenLooks(const DeviceRunSetup& setup) const {
    std::optional<test::CpuKernels> quick;
    if (setup.plan.precision != Precision::kFp16) quick.emplace();  // which they do not take
    DeviceRun run(set_, setup, kRefusingDevice);
    run.trainer.Step();
    test::ResetDeviceCounts();
    for (int step = 0; step < 3; ++step) run.trainer.Step(/*read=*/false);
    EXPECT_THAT(CountsOfDevice().waits, IsEmpty());
    EXPECT_GT(CountsOfDevice().kernels, 0);
    run.trainer.Step();
    EXPECT_EQ(CountsOfDevice().waits, (std::map<std::string, int64_t>{{"a copy to the host", 1}}));
  }

  const MemoryShardSet set_ = CountingDocuments();
};

class FamilyTrainingTest : public DeviceTrainingTest,
                           public testing::WithParamInterface<std::tuple<NamedModel, Precision>> {
 protected:
  DeviceRunSetup Setup() const {
    const auto& [model, precision] = GetParam();
    DeviceRunSetup setup = {.model = model.config, .plan = TinyPlan(precision)};
    // Larger steps make more of what is rounded elsewhere, as by processors without fp16.
    if (precision == Precision::kFp16) setup.plan.schedule.peak_lr = 2e-3;
    return setup;
  }
};

TEST_P(FamilyTrainingTest, LossGradientsAndWeightsAreTheCpus) {
  TrainsLikeTheCpu(Setup());
}

TEST_P(FamilyTrainingTest, NobodyWaitsBetweenTwoLooks) {
  NeverWaitsBetweenLooks(Setup());
}

/// Between them they have all kernels that a type can matter to, which are emulated.
std::vector<NamedModel> FamiliesInFp16() {
  std::vector<NamedModel> models = test::DeviceModels();
  std::erase_if(models, [](const NamedModel& model) {
    return model.name != "llama" && model.name != "gpt2" && model.name != "ten_plain";
  });
  return models;
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyTrainingTest,
                         testing::Combine(testing::ValuesIn(test::DeviceModels()),
                                          testing::Values(Precision::kFp32, Precision::kBf16)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "_" + PrecisionName(std::get<1>(info.param));
                         });

INSTANTIATE_TEST_SUITE_P(InFp16, FamilyTrainingTest,
                         testing::Combine(testing::ValuesIn(FamiliesInFp16()),
                                          testing::Values(Precision::kFp16)),
                         [](const auto& info) { return std::get<0>(info.param).name; });

/// What a run may choose besides.
struct NamedSetup {
  std::string name;
  DeviceRunSetup setup;
};
void PrintTo(const NamedSetup& setup, std::ostream* out) {
  *out << setup.name;
}

std::vector<NamedSetup> Setups() {
  std::vector<NamedSetup> setups;
  const auto add = [&](const std::string& name, const ModelConfig& model) -> DeviceRunSetup& {
    setups.push_back({name, {.model = model}});
    setups.back().setup.model.vocab_size = test::kTinyVocab;
    return setups.back().setup;
  };
  const ModelConfig llama = test::SmallLlama(), gpt2 = test::SmallGpt2(), neox = test::SmallNeox(),
                    ten = test::TenOf(test::TenKinds()[1].fields);
  const std::vector<NamedModel> families = {{"llama", llama}, {"gpt2", gpt2}, {"neox", neox}, {"ten", ten}};
  for (const auto& [name, model] : families) {
    if (!FamilyOf(model).runs_on_gpu()) continue;
    add(name + "_lora", model).plan.tuning.lora = LoraOptions{.rank = 2, .alpha = 4, .dropout = 0.4};
    add(name + "_recomputed", model).checkpointing = ActivationCheckpointing::kFull;
    if (name != "ten") {
      add(name + "_least_recomputed", model).checkpointing = ActivationCheckpointing::kLeast;
    }
    add(name + "_offloaded", model).offload = {.activations = true, .gradients = true};
    DeviceRunSetup& deep = add(name + "_deep_offloaded", model);
    deep.model.num_layers = 7;
    deep.offload = {.activations = true, .gradients = true};
  }
  for (const auto& [name, model] : std::vector<NamedModel>(families.begin(), families.end() - 1)) {
    DeviceRunSetup& setup = add(name + "_bf16_stream", model);
    setup.plan = TinyPlan(Precision::kBf16);
    setup.plan.schedule.peak_lr = 2e-3;  // larger steps make more of what is rounded elsewhere
    setup.kinds.residual = Precision::kBf16;
    DeviceRunSetup again = setup;
    again.checkpointing = ActivationCheckpointing::kFull;
    again.offload = {.activations = true};
    setups.push_back({name + "_bf16_stream_recomputed", again});
  }
  add("llama_partly_recomputed", llama).checkpointing = ActivationCheckpointing::kSelective;
  DeviceRunSetup& quantized = add("llama_nf4", llama);
  quantized.plan.tuning = {.lora = LoraOptions{.rank = 2, .alpha = 4}, .frozen_format = WeightFormat::kNf4};
  for (const auto& [name, model] : families) {
    if (!FamilyOf(model).runs_on_gpu()) continue;
    DeviceRunSetup& dora = add(name + "_dora", model);
    dora.plan.tuning.lora = LoraOptions{.rank = 2, .alpha = 4, .dropout = 0.4, .dora = true};
  }
  DeviceRunSetup& dora_on_nf4 = add("llama_dora_on_nf4", llama);
  dora_on_nf4.plan = TinyPlan(Precision::kBf16);
  dora_on_nf4.plan.tuning = {.lora = LoraOptions{.rank = 2, .alpha = 4, .dora = true},
                             .frozen_format = WeightFormat::kNf4};
  DeviceRunSetup& saved = add("llama_lora_with_modules", llama);
  saved.plan.tuning.lora =
      LoraOptions{.rank = 2,
                  .alpha = 4,
                  .rank_stabilized = true,
                  .saved_modules = llama.tie_embeddings ? "embed_tokens" : "embed_tokens,lm_head"};
  DeviceRunSetup& dense = add("llama_dense_attention", llama);
  dense.plan = TinyPlan(Precision::kBf16);
  dense.kinds.equal_spans = AttentionBackend::kCudnn;
  add("llama_in_slices", llama).kinds.head_slice_logits = 1;
  add("gpt2_in_slices", gpt2).kinds.head_slice_logits = 1;
  add("llama_addends", llama).plan.loss_addends = {.z_loss = 0.01, .label_smoothing = 0.1};
  for (const auto& [name, model] : families) {
    if (name == "ten") continue;
    DeviceRunSetup& in_fp8 = add(name + "_in_fp8", model);
    in_fp8.plan = TinyPlan(Precision::kBf16);
    in_fp8.kinds.fp8 = {.mlp = true, .head = true};
  }
  DeviceRunSetup& in_slices = add("llama_in_fp8_slices", llama);
  in_slices.plan = TinyPlan(Precision::kBf16);
  in_slices.kinds.fp8 = {.head = true};
  in_slices.kinds.head_slice_logits = 1;
  add("llama_moments_in_bf16", llama).plan.optimizer.states = OptimizerStates::kBf16;
  add("ten_in_pieces", ten).plan.tbptt = 6;
  add("ten_sequential", ten).kinds.scan = ScanKind::kSequential;
  add("ten_chunked", ten).kinds.scan = ScanKind::kChunked;
  add("ten_selective_chunked", test::TenOf(test::TenKinds()[2].fields)).kinds.scan = ScanKind::kChunked;
  return setups;
}

class SetupTrainingTest : public DeviceTrainingTest, public testing::WithParamInterface<NamedSetup> {
 protected:
  SetupTrainingTest() { setup_.offload_folder = folder_.path(); }
  const test::CpuKernels quick_;
  const test::TemporaryFolder folder_;
  DeviceRunSetup setup_ = GetParam().setup;
};

TEST_P(SetupTrainingTest, LossGradientsAndWeightsAreTheCpus) {
  TrainsLikeTheCpu(setup_);
}

TEST_P(SetupTrainingTest, NobodyWaitsBetweenTwoLooks) {
  NeverWaitsBetweenLooks(setup_);
}

INSTANTIATE_TEST_SUITE_P(Setups, SetupTrainingTest, testing::ValuesIn(Setups()),
                         [](const auto& info) { return info.param.name; });

/// A micro-batch of GPT-2, which has biases and a GELU by tanh, of NeoX, whose GELU is the exact one, and of
/// Qwen2, whose three projections are one product with three biases.
TEST_F(DeviceTrainingTest, BiasesAndGelusOfAllLayersAreWithinTheirProducts) {
  using testing::Pair;
  using testing::UnorderedElementsAre;
  const auto products = [](ModelConfig config) {
    config.vocab_size = test::kTinyVocab;
    const auto model = MakeModel(test::Families(), config, Precision::kBf16, kRefusingDevice, 3);
    cuda_emulation::ResetProductCounts();
    model->LossAndGradients(test::RandomInput(config, {15, 4, 16}), 1.0);
    return cuda_emulation::ProductCounts();
  };
  const int64_t layers = test::SmallGpt2().num_layers;
  EXPECT_THAT(products(test::SmallGpt2()),
              UnorderedElementsAre(Pair("bias", layers), Pair("gelu", layers), Pair("gelu gradient", layers),
                                   Pair("bias gradient", 4 * layers)));
  EXPECT_THAT(products(test::SmallNeox(/*parallel=*/false)),
              UnorderedElementsAre(Pair("bias", 2 * layers), Pair("bias gradient", 4 * layers)));
  EXPECT_THAT(products(test::SmallQwen2()),
              UnorderedElementsAre(Pair("bias", layers), Pair("bias gradient", layers)));
}

TEST_F(DeviceTrainingTest, InFp8AllGemmsOfMlpsAndTheHeadAreAndNoOthers) {
  using testing::Pair;
  using testing::UnorderedElementsAre;
  const auto products = [](ModelConfig config, Fp8Parts parts) {
    config.vocab_size = test::kTinyVocab;
    ComputeKinds kinds;
    kinds.fp8 = parts;
    const auto model = MakeModel(test::Families(), config, Precision::kBf16, kRefusingDevice, 3, kinds);
    cuda_emulation::ResetProductCounts();
    model->LossAndGradients(test::RandomInput(config, {15, 4, 16}), 1.0);
    return cuda_emulation::ProductCounts();
  };
  const int64_t layers = test::SmallGpt2().num_layers;
  EXPECT_THAT(products(test::SmallLlama(), {.mlp = true}), UnorderedElementsAre(Pair("fp8", 6 * layers)));
  EXPECT_THAT(products(test::SmallLlama(), {.head = true}), UnorderedElementsAre(Pair("fp8", 3)));
  EXPECT_THAT(products(test::SmallGpt2(), {.mlp = true, .head = true}),
              UnorderedElementsAre(Pair("fp8", 6 * layers + 3), Pair("bias", layers),
                                   Pair("bias gradient", 2 * layers)));
}

TEST_F(DeviceTrainingTest, EvaluationIsTheCpus) {
  const test::CpuKernels quick;
  ExpectEvaluationOfTheCpu(/*max_tokens=*/0);
}

TEST_F(DeviceTrainingTest, EvaluationByTheKernelsOfTheCudaSourcesIsTheCpus) {
  ExpectEvaluationOfTheCpu(/*max_tokens=*/128);
}

TEST_F(DeviceTrainingTest, AMicroBatchEvaluatedWaitsOnce) {
  DeviceRun run(set_, {.model = test::DeviceModels()[0].config}, kRefusingDevice);
  const ModelInput input = test::RandomInput(run.model->config(), {20, 12});
  run.model->Loss(input);
  test::ResetDeviceCounts();
  run.model->Loss(input);
  EXPECT_EQ(CountsOfDevice().waits, (std::map<std::string, int64_t>{{"a copy to the host", 1}}));
}

TEST_F(DeviceTrainingTest, TheSameStepsAgainAreTheSameBits) {
  const DeviceRunSetup setup = {.model = test::DeviceModels()[0].config, .plan = TinyPlan(Precision::kBf16)};
  DeviceRun run(set_, setup, kRefusingDevice), again(set_, setup, kRefusingDevice);
  for (int step = 0; step < kSteps; ++step) run.trainer.Step(false), again.trainer.Step();
  EXPECT_TRUE(run.Weights().equal(again.Weights()));
}

}  // namespace
}  // namespace trainwright
