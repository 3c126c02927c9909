// What is told of a run's memory from shapes alone: against those of a model that ran on the CPU, and against
// formulas written down from the layers.
#include "lib/memory/training_memory.h"

#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "lib/device/pinned_memory.h"
#include "lib/nn/attention/torch_attention.h"
#include "lib/nn/linear/micro_kernel.h"
#include "lib/optim/adamw.h"
#include "tests/model/families.h"
#include "tests/model/small_models.h"
#include "tests/model/ten_models.h"
#include "tests/model/toy_family.h"
#include "tests/spec/toy_recurrent_family.h"

namespace trainwright {
namespace {

/// Grouped heads, whose width is not the model's.
ModelConfig TinyModel() {
  ModelConfig config = test::Families().descriptions().PresetConfig("llama-1m", 96);
  config.hidden_size = 48;
  config.intermediate_size = 80;
  config.num_layers = 3;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 16;
  return config;
}

/// What a device's pads of the vocabulary take beside logits and weights without them.
int64_t BytesOfPads(const ModelConfig& model, int64_t labels, int64_t element_bytes) {
  const int64_t padded = (model.vocab_size + 127) / 128 * 128;
  if (padded == model.vocab_size) return 0;
  return element_bytes * (labels * (padded - model.vocab_size) + padded * model.hidden_size);
}

/// Spans of these lengths; the last token of each has no label.
ModelInput BatchOf(const std::vector<int64_t>& lengths) {
  int64_t tokens = 0;
  for (const int64_t length : lengths) tokens += length;
  ModelInput batch = EqualSamples(1, tokens);
  batch.span_starts = {0};
  for (const int64_t length : lengths) {
    batch.span_starts.push_back(batch.span_starts.back() + static_cast<int32_t>(length));
    batch.labels_n[batch.span_starts.back() - 1] = -100;
  }
  return batch;
}

MemoryRequest OnGpu(Precision precision) {
  return {.model = TinyModel(),
          .precision = precision,
          .device = at::Device(at::kCUDA),
          .optimizers = BuiltInOptimizers()};
}

TEST(TrainingMemoryTest, OfAGpuInFp32ItIsWhatAModelOnTheCpuHolds) {
  const ModelInput batch = BatchOf({70, 5, 165});
  MemoryRequest request = OnGpu(Precision::kFp32);
  for (const ModelConfig& config : {TinyModel(), test::SmallQwen2(), test::SmallGpt2(), test::SmallNeox(),
                                    test::SmallNeox(/*parallel=*/false)}) {
    SCOPED_TRACE(FamilyOf(config).model_type());
    request.model = config;
    const auto model = MakeModel(test::Families(), config, Precision::kFp32, at::Device(at::kCPU), 1);
    AdamW optimizer(&model->parameters(), {});
    model->LossAndGradients(batch, 1.0);
    const MemoryParts needs = TrainingMemory(test::Families(), request, batch);
    EXPECT_EQ(needs.parameters, static_cast<int64_t>(model->parameters().values().nbytes()));
    EXPECT_EQ(needs.gradients, static_cast<int64_t>(model->parameters().gradients().nbytes()));
    EXPECT_EQ(needs.optimizer, optimizer.state_bytes());
    EXPECT_EQ(needs.compute_copy, 0);
    EXPECT_EQ(needs.activations, model->memory().activation_bytes);
    EXPECT_EQ(needs.logits, model->memory().logits_bytes + BytesOfPads(config, 237, sizeof(float)));
  }
}

TEST(TrainingMemoryTest, EveryPresetOfEveryFamilyIsPlannedForAGpu) {
  int64_t planned = 0;
  for (const FamilyDescription* family : test::Families().descriptions().all()) {
    for (const ModelPreset& preset : family->Presets()) {
      SCOPED_TRACE(preset.config.preset);
      MemoryRequest request = OnGpu(Precision::kBf16);
      request.model = test::Families().descriptions().PresetConfig(preset.config.preset, 50304);
      const MemoryParts needs = TrainingMemory(test::Families(), request, EqualSamples(2, 128));
      // fp32 weights, gradients and two moments, and the copy in bf16: 18 bytes an element. Parameters begin
      // at multiples of 16 elements, so that each of the few small ones of a layer leaves a gap behind it.
      const int64_t bytes = needs.parameters + needs.gradients + needs.optimizer + needs.compute_copy;
      EXPECT_EQ(bytes % 18, 0);
      EXPECT_THAT(bytes / 18 - CountParameters(request.model),
                  testing::AllOf(testing::Ge(0), testing::Lt(8 * 16 * request.model.num_layers)));
      EXPECT_GT(needs.activations, 0);
      ++planned;
    }
  }
  EXPECT_GT(planned, 20);
}

TEST(TrainingMemoryTest, OfAGpuInBf16ItFollowsFromTheLayers) {
  constexpr int64_t kRows = 240, kLabels = 237, kFp32 = 4, kBf16 = 2;
  const ModelConfig model = TinyModel();
  const int64_t width = model.hidden_size, wide = model.intermediate_size,
                query = model.num_heads * model.head_dim,
                row = query + 2 * model.num_kv_heads * model.head_dim;
  const MemoryParts needs = TrainingMemory(test::Families(), OnGpu(Precision::kBf16), BatchOf({70, 5, 165}));
  EXPECT_EQ(needs.optimizer, 2 * needs.parameters);
  EXPECT_EQ(needs.compute_copy, needs.parameters / 2);
  // The stream before each half, two statistics and the logsumexp in fp32; qkv, attention, gate, up in bf16.
  const int64_t layer = kFp32 * (2 * width + 2 + model.num_heads) + kBf16 * (row + query + 2 * wide);
  // Of the last norm, and its statistic; the gradient of the stream.
  const int64_t single_fp32 = kFp32 * (width + 1 + width);
  // Normalised, update, short gradient, gradient of the normalised; activation and its gradient; the
  // gradients of attention and of qkv.
  const int64_t single_bf16 = kBf16 * (4 * width + 2 * wide + query + row);
  EXPECT_EQ(needs.activations, kRows * (model.num_layers * layer + single_fp32 + single_bf16));
  // One slice: logits of the rows with a label, these rows and their gradients.
  EXPECT_EQ(needs.logits,
            kLabels * kBf16 * (model.vocab_size + 2 * width) + BytesOfPads(model, kLabels, kBf16));
}

TEST(TrainingMemoryTest, AResidualStreamInBf16IsHalfAndHasNoSecondGradient) {
  constexpr int64_t kRows = 240;
  for (const ModelConfig& config :
       {TinyModel(), test::SmallGpt2(), test::SmallNeox(), test::SmallNeox(/*parallel=*/false)}) {
    SCOPED_TRACE(FamilyOf(config).model_type());
    MemoryRequest request = OnGpu(Precision::kBf16);
    request.model = config;
    const auto memory = [&] { return TrainingMemory(test::Families(), request, BatchOf({70, 5, 165})); };
    const MemoryParts fp32 = memory();
    request.kinds.residual = Precision::kBf16;
    const MemoryParts bf16 = memory();
    // The stream before each half of a layer, or before a parallel one, the last norm's and the gradient's:
    // two bytes less of each element; and the gradient that GEMMs read, of two bytes, is no other.
    const int64_t streams = config.num_layers * (config.parallel_residual ? 1 : 2) + 2;
    EXPECT_EQ(fp32.activations - bf16.activations, kRows * config.hidden_size * 2 * (streams + 1));
    EXPECT_EQ(fp32.logits, bf16.logits);
    EXPECT_EQ(fp32.gradients, bf16.gradients);
  }
}

TEST(TrainingMemoryTest, LogitsOfAGpuAreThoseOfTheSlicesThatWereChosen) {
  constexpr int64_t kSpans = 3, kLength = 3000, kRows = kSpans * kLength;  // each with a label
  MemoryRequest request = OnGpu(Precision::kBf16);
  request.model.vocab_size = 128;
  const int64_t width = request.model.hidden_size;
  const auto logits = [&] {
    return TrainingMemory(test::Families(), request, EqualSamples(kSpans, kLength)).logits;
  };
  EXPECT_EQ(logits(), 4096 * 128 * 2);
  request.kinds.head_slice_logits = 128 * kRows;
  EXPECT_EQ(logits(), kRows * 128 * 2);
  request.kinds.head_slice_logits = 128 * (kRows - 1);
  EXPECT_EQ(logits(), 4608 * 128 * 2);  // of two slices, in a multiple of 128 rows
  request.model.vocab_size = 100;
  EXPECT_EQ(logits(), 4608 * 128 * 2 + 128 * width * 2);
}

TEST(TrainingMemoryTest, ProductsOnACpuLeavePartsOfTheLayersOperandsAndOfTheHead) {
  const MemoryRequest request = {.model = TinyModel(), .optimizers = BuiltInOptimizers()};
  const auto products = [&](int64_t tokens) {
    return TrainingMemory(test::Families(), request, EqualSamples(1, tokens)).products;
  };
  constexpr int64_t kFp32 = 4, kHead = 96 * 48;
  const int64_t parts = cpu::HasMicroKernels(/*bf16=*/false) ? 5 : 3;
  EXPECT_EQ(products(240), kFp32 * (parts * 240 * 80 + 3 * kHead));  // the input of the MLP's last matrix
  EXPECT_EQ(products(10), kFp32 * (parts * 48 * 80 + 3 * kHead));    // a matrix of the MLP
}

TEST(TrainingMemoryTest, Fp8AddsTheCodesOfTheLargestLayersOperandsAndAWorkspace) {
  MemoryRequest request = OnGpu(Precision::kBf16);
  const ModelConfig& model = request.model;
  constexpr int64_t kTokens = 1000, kDepth = 1008, kWorkspace = 32 << 20;
  const auto products = [&](Fp8Parts parts) {
    request.kinds.fp8 = parts;
    return TrainingMemory(test::Families(), request, EqualSamples(1, kTokens)).products;
  };
  EXPECT_EQ(products({}), 0);
  // Of gate and up: the outputs' gradients along both, the inputs and the weights.
  const int64_t width = model.hidden_size, wide = 2 * model.intermediate_size;
  EXPECT_EQ(products({.mlp = true}), kWorkspace + 2 * kDepth * wide + kDepth * width + width * wide);
  const int64_t vocabulary = (model.vocab_size + 127) / 128 * 128;
  // Of the head the weights in both directions.
  EXPECT_EQ(products({.head = true}),
            kWorkspace + 2 * kDepth * vocabulary + kDepth * width + 2 * width * vocabulary);
}

TEST(TrainingMemoryTest, AGpuHasAWorkspaceForTheGemmsThatHaveBiasesOrAGeluWithinThem) {
  MemoryRequest request = OnGpu(Precision::kBf16);
  const auto products = [&](const ModelConfig& model) {
    request.model = model;
    return TrainingMemory(test::Families(), request, EqualSamples(1, 16)).products;
  };
  constexpr int64_t kWorkspace = 32 << 20;
  EXPECT_EQ(products(test::SmallGpt2()), kWorkspace);
  ModelConfig without_biases = test::SmallGpt2(/*bias=*/false);
  EXPECT_EQ(products(without_biases), 0);
  without_biases.activation = Activation::kGeluTanh;
  EXPECT_EQ(products(without_biases), kWorkspace);
  EXPECT_EQ(products(test::SmallNeox()), kWorkspace);
  EXPECT_EQ(products(TinyModel()), 0);
  request.tuning.lora = LoraOptions{.rank = 2, .alpha = 4};
  EXPECT_EQ(products(test::SmallGpt2()), 0) << "adapters add to a GEMM's result before its bias";
  request.tuning = {};
  EXPECT_EQ(StateMemory(test::Families(), request).products, 0);
}

TEST(TrainingMemoryTest, LeavesThatWaitAndBucketsBetweenRanksAreTold) {
  MemoryRequest request = {.model = TinyModel(), .optimizers = BuiltInOptimizers()};
  const auto exchange = [&](int64_t ranks, int64_t exact_leaves) {
    request.ranks = ranks;
    request.exchange = {.bucket_bytes = 4 << 20, .exact_leaves = exact_leaves};
    return StateMemory(test::Families(), request);
  };
  EXPECT_EQ(exchange(1, 0).exchange, 0);
  EXPECT_EQ(exchange(4, 0).exchange, 0) << "the engine adds up in place";
  const MemoryParts alone = exchange(1, 8);
  EXPECT_EQ(alone.exchange, 3 * alone.gradients);
  EXPECT_EQ(alone.total() - exchange(1, 0).total(), alone.exchange);
  // Two ranks have four leaves each, and one bucket on the way and on the way back. Of its two blocks the
  // first is whole and rank 0's, who gets as much from either rank.
  constexpr int64_t kBlockBytes = 4 * 65536;
  ASSERT_GT(alone.gradients, kBlockBytes);
  ASSERT_LT(alone.gradients, 2 * kBlockBytes);
  EXPECT_EQ(exchange(2, 8).exchange, 2 * alone.gradients + 2 * 2 * kBlockBytes);
}

TEST(TrainingMemoryTest, AttentionsScratchIsThatOfTheBackend) {
  const SpanTable spans({0, 70, 75, 240});
  const auto bytes = [&](AttentionBackend backend, int64_t kv_heads, at::ScalarType dtype) {
    return AttentionWorkspaceBytes(backend, {240, 4, kv_heads, 40}, dtype, spans);
  };
  EXPECT_EQ(bytes(AttentionBackend::kAuto, 2, at::kFloat), 0);
  // Flash: gradients of 4 + 2 + 2 heads, keys' and values' of every query head, sums of 240 + 3 * 128 rows
  // of 64 elements.
  EXPECT_EQ(bytes(AttentionBackend::kFlash, 2, at::kBFloat16),
            240 * 8 * 40 * 2 + 2 * 240 * 4 * 40 * 2 + 624 * 4 * 64 * 4 + 624 * 4 * 4);
  EXPECT_EQ(bytes(AttentionBackend::kFlash, 4, at::kHalf),
            240 * 12 * 40 * 2 + 624 * 4 * 64 * 4 + 624 * 4 * 4);
  // The others: of the longest span, 165 rows.
  EXPECT_EQ(bytes(AttentionBackend::kMath, 2, at::kFloat),
            8 * 165 * 4 * 40 * 4 + 2 * 165 * 165 * 4 * 4 + 165 * 165);
  EXPECT_EQ(bytes(AttentionBackend::kEfficient, 4, at::kFloat), 3 * 165 * 4 * 40 * 4 + 165 * 4 * 4);
}

TEST(TrainingMemoryTest, InAFixedOrderFlashHasSumsForEachShareOfAGpu) {
  const auto bytes = [](const SpanTable& spans, int64_t multiprocessors) {
    const AttentionShape shape = {spans.starts.back(), 4, 4, 40};
    return AttentionWorkspaceBytes(AttentionBackend::kFlash, shape, at::kHalf, spans, multiprocessors);
  };
  // Of 12 heads of spans, so that 132 multiprocessors are 11 shares.
  const SpanTable few({0, 70, 75, 240});
  EXPECT_EQ(bytes(few, 132) - bytes(few, 0), 10 * 624 * 4 * 64 * 4);
  EXPECT_EQ(bytes(few, 133) - bytes(few, 0), 11 * 624 * 4 * 64 * 4);
  std::vector<int32_t> starts;
  for (int32_t start = 0; start <= 330; start += 10) starts.push_back(start);
  const SpanTable many(starts);  // 132 heads of spans
  EXPECT_EQ(bytes(many, 132), bytes(many, 0));
}

TEST(TrainingMemoryTest, DeterministicAlgorithmsTakeMoreScratchForAttention) {
  const auto attention = [] {
    return TrainingMemory(test::Families(), OnGpu(Precision::kBf16), EqualSamples(1, 16)).attention;
  };
  const bool before = at::globalContext().deterministicAlgorithms();
  at::globalContext().setDeterministicAlgorithms(false, false);
  const int64_t any_order = attention();
  at::globalContext().setDeterministicAlgorithms(true, false);
  const int64_t fixed_order = attention();
  at::globalContext().setDeterministicAlgorithms(before, false);
  EXPECT_GT(fixed_order, 2 * any_order) << "a span of 4 heads leaves most of a GPU idle";
}

TEST(TrainingMemoryTest, WhatAGpuOffloadsIsOnItsHost) {
  const auto memory = [](const OffloadChoice& offload, at::DeviceType device) {
    MemoryRequest request = OnGpu(Precision::kBf16);
    request.device = at::Device(device);
    request.offload = offload;
    return TrainingMemory(test::Families(), request, EqualSamples(1, 16));
  };
  EXPECT_EQ(memory({}, at::kCUDA).of_host(), 0);
  EXPECT_EQ(memory({.gradients = true}, at::kCUDA).offloaded, PinnedPieces::kPieceBytes);
  const MemoryParts both = memory({.activations = true, .gradients = true}, at::kCUDA);
  EXPECT_EQ(both.offloaded, 2 * PinnedPieces::kPieceBytes);
  EXPECT_EQ(both.of_host(), both.offloaded);
  EXPECT_EQ(memory({.activations = true, .gradients = true}, at::kCPU).offloaded, 0) << "it is in files";
}

TEST(SnapshotBytesTest, OfAGpuAreTheBlocksThatTorchLocks) {
  MemoryRequest request = {.model = test::Families().descriptions().PresetConfig("nanogpt-10m", 65),
                           .device = at::Device(at::kCUDA),
                           .optimizers = BuiltInOptimizers()};
  const int64_t weights = 4 * CountParameters(request.model);
  ASSERT_GT(PinnedBlockBytes(weights), weights);
  EXPECT_EQ(SnapshotBytes(test::Families(), request), 3 * PinnedBlockBytes(weights));
  request.device = at::Device(at::kCPU);
  EXPECT_EQ(SnapshotBytes(test::Families(), request), 3 * weights);
}

TEST(StateMemoryTest, CountsWeightsGradientsMomentsAndTheShortCopy) {
  MemoryRequest request = {.model = test::Families().descriptions().PresetConfig("nanogpt-10m", 65),
                           .device = at::Device(at::kCUDA),
                           .optimizers = BuiltInOptimizers()};
  const int64_t parameters = CountParameters(request.model);
  EXPECT_EQ(StateMemory(test::Families(), request).total(), parameters * 16);
  request.precision = Precision::kBf16;
  EXPECT_EQ(StateMemory(test::Families(), request).total(), parameters * 18);
}

struct Levers {
  FineTuning tuning;
  OptimizerStates states = OptimizerStates::kFp32;
  ActivationCheckpointing checkpointing = ActivationCheckpointing::kNo;
  OffloadChoice offload;
};

/// The built-in families, and one that only the tests know.
const ModelFamilies& AllFamilies() {
  static const ModelFamilies families = [] {
    std::vector<ModelFamily> all;
    for (const FamilyDescription* description : test::Families().descriptions().all()) {
      ModelConfig config;
      config.family = description;
      all.push_back(test::Families().Of(config));
    }
    all.push_back({&test::ToyRecurrent(), test::MakeToyBody});
    return ModelFamilies(std::move(all));
  }();
  return families;
}

ModelConfig ToyModel() {
  ModelConfig config;
  config.family = &test::ToyRecurrent();
  config.vocab_size = 50;
  config.hidden_size = 48;
  config.num_layers = 3;
  config.max_positions = 256;
  config.own = FamilyFields::Of(test::ToyRecurrentFields{.recurrence_start = 0.5});
  return config;
}

/// With every part that a layer can have.
ModelConfig WholeTen() {
  TenFields fields = test::TenKinds()[3].fields;
  fields.selective = true;
  return test::TenOf(fields);
}

using HeldMemoryCase = std::tuple<ModelConfig, Levers>;
class HeldMemoryTest : public testing::TestWithParam<HeldMemoryCase> {};

TEST_P(HeldMemoryTest, IsToldBeforehandByShapes) {
  const auto& [config, levers] = GetParam();
  const MemoryRequest request = {.model = config,
                                 .tuning = levers.tuning,
                                 .optimizer = {.states = levers.states},
                                 .checkpointing = levers.checkpointing,
                                 .offload = levers.offload,
                                 .optimizers = BuiltInOptimizers()};
  const ModelInput batch = BatchOf({70, 5, 165});
  const auto model = MakeModel(AllFamilies(), request.model, request.precision, request.device, 1,
                               AttentionBackend::kAuto, request.tuning);
  model->set_activation_checkpointing(request.checkpointing);
  model->Offload(request.offload, testing::TempDir());
  const AdamW optimizer(&model->parameters(), request.optimizer);
  model->LossAndGradients(batch, 1.0);
  MemoryParts held = HeldByModel(*model);
  held.optimizer = optimizer.state_bytes();
  const MemoryParts told = TrainingMemory(AllFamilies(), request, batch);
  EXPECT_GT(held.activations, 0);
  EXPECT_GT(held.logits, 0);
  held.products = told.products;  // an estimate: scripts/memory_model.py has the proof
  EXPECT_EQ(EncodeMemoryParts(told), EncodeMemoryParts(held));
}

std::string NameOfHeldMemoryCase(const testing::TestParamInfo<HeldMemoryCase>& info) {
  const std::string& name = FamilyOf(std::get<0>(info.param)).model_type();
  std::string text = std::to_string(info.index);
  for (const char c : name) text += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return text;
}

INSTANTIATE_TEST_SUITE_P(
    LeastRecomputed, HeldMemoryTest,
    testing::Combine(testing::Values(TinyModel(), test::SmallGpt2(), test::SmallNeox(/*parallel=*/true)),
                     testing::Values(Levers{.checkpointing = ActivationCheckpointing::kLeast},
                                     Levers{.checkpointing = ActivationCheckpointing::kLeast,
                                            .offload = {.activations = true}})),
    NameOfHeldMemoryCase);

INSTANTIATE_TEST_SUITE_P(
    Levers, HeldMemoryTest,
    testing::Combine(testing::Values(TinyModel(), test::SmallGpt2(), test::SmallNeox(/*parallel=*/true),
                                     test::SmallNeox(/*parallel=*/false), ToyModel(), WholeTen()),
                     testing::Values(Levers{},
                                     Levers{.states = OptimizerStates::kBf16, .offload = {.gradients = true}},
                                     Levers{.checkpointing = ActivationCheckpointing::kSelective,
                                            .offload = {.activations = true}},
                                     Levers{.checkpointing = ActivationCheckpointing::kFull},
                                     Levers{.tuning = {.lora = LoraOptions{.rank = 2, .alpha = 4}},
                                            .offload = {.activations = true, .gradients = true}},
                                     Levers{.tuning = {.lora = LoraOptions{.rank = 2, .alpha = 4},
                                                       .frozen_format = WeightFormat::kNf4},
                                            .checkpointing = ActivationCheckpointing::kSelective})),
    NameOfHeldMemoryCase);

INSTANTIATE_TEST_SUITE_P(
    Dora, HeldMemoryTest,
    testing::Combine(
        testing::Values(TinyModel(), test::SmallGpt2(), test::SmallNeox(/*parallel=*/true), WholeTen()),
        testing::Values(Levers{.tuning = {.lora = LoraOptions{.rank = 2, .alpha = 4, .dora = true}},
                               .offload = {.activations = true, .gradients = true}},
                        Levers{.tuning = {.lora = LoraOptions{.rank = 2, .alpha = 4, .dora = true},
                                          .frozen_format = WeightFormat::kNf4},
                               .checkpointing = ActivationCheckpointing::kSelective})),
    NameOfHeldMemoryCase);

INSTANTIATE_TEST_SUITE_P(
    ModulesTrainedWhole, HeldMemoryTest,
    testing::Combine(
        testing::Values(TinyModel(), test::SmallQwen2(), WholeTen()),
        testing::Values(Levers{
            .tuning = {.lora = LoraOptions{.rank = 2, .alpha = 4, .saved_modules = "embed_tokens,norm"}},
            .offload = {.activations = true, .gradients = true}})),
    NameOfHeldMemoryCase);

}  // namespace
}  // namespace trainwright
