#include "lib/memory/training_memory.h"

#include <ATen/Context.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "lib/device/gpu_limits.h"
#include "lib/device/pinned_memory.h"
#include "lib/dist/value_exchange.h"
#include "lib/nn/attention/attention_backend.h"
#include "lib/nn/attention/torch_attention.h"
#include "lib/nn/linear/fp8.h"
#include "lib/nn/linear/gemm_kernels.h"
#include "lib/nn/linear/product_chooser.h"
#include "lib/nn/loss/head_slices.h"
#include "lib/nn/product_workspace.h"
#include "lib/optim/optimizer.h"
#include "lib/spec/family.h"

namespace trainwright {
namespace {

Numerics NumericsOf(const MemoryRequest& request) {
  return ChooseNumerics(request.precision, request.device, request.kinds);
}

/// As the rank has them that has most.
void ShardShapes(const MemoryRequest& request, LanguageModel* shapes) {
  FlatParameters& parameters = shapes->parameters();
  parameters.Shard(ShardLayout(parameters.elements(), /*rank=*/0, request.ranks),
                   request.gives_gradients_away);
  // Of several pieces the last one gives gradients away: before it all are there.
  if (!request.gives_gradients_away || request.tbptt > 0) return;
  shapes->body().set_on_segment_gradients_done(GradientExchange::Releaser(
      &parameters.gradient_buffer(), request.ranks, request.exchange.bucket_bytes));
}

MemoryParts WithOptimizer(const MemoryRequest& request, LanguageModel* shapes) {
  MemoryParts memory = HeldByModel(*shapes);
  const auto optimizer =
      MakeOptimizer(request.optimizers, &shapes->parameters(), request.optimizer, /*seed=*/0);
  memory.optimizer = optimizer->state_bytes();
  memory.products += optimizer->scratch_bytes();
  const FlatParameters& parameters = shapes->parameters();
  const bool sharded = parameters.shard() != nullptr;
  memory.exchange = GradientExchange::MemoryBytes(parameters.gradient_buffer(), request.ranks,
                                                  request.exchange, sharded ? SumsOf::kOwners : SumsOf::kAll);
  if (sharded) memory.exchange += ValueExchange::MemoryBytes(parameters, request.exchange.bucket_bytes);
  return memory;
}

/// What weights that are quantised as they are read leave in a CPU's allocator: blocks of up to 32 MiB are
/// taken from the heap (glibc's largest threshold of mmap), and of the largest of them about half was
/// measured to stay between what was allocated meanwhile.
int64_t LeftByQuantizing(const LanguageModel& shapes, const MemoryRequest& request) {
  if (request.tuning.frozen_format == WeightFormat::kPlain) return 0;
  constexpr int64_t kLargestHeapBlock = 32 << 20;
  int64_t largest_bytes = 0;
  for (const Parameter& parameter : shapes.parameters().all()) {
    largest_bytes = std::max(largest_bytes, parameter.size * static_cast<int64_t>(sizeof(float)));
  }
  return std::min(largest_bytes, kLargestHeapBlock) / 2;
}

/// What products on a CPU leave in the allocator: they pack the right operand, which is a matrix of weights
/// or, for the gradient of one, its input, in parts of 8 MB at most (lib/nn/linear/block_matmul.cc). Between
/// aligned blocks of other sizes the heap was measured to grow, by shape and threads, to 3 to 8 parts of the
/// layers' products (in fp32 the middle of that is taken, in bf16 nearly its end), and to three of the
/// head's, of which a pass has that many. Where at::mm computes them, to three of both.
int64_t EstimateProducts(const LanguageModel& shapes, Precision precision, int64_t num_tokens) {
  const int64_t parts_of_packed = precision == Precision::kFp32 ? 5 : 7;
  const CpuGemms& gemms = ChosenCpuGemms();
  const bool by_blocks = gemms.fp32 == CpuGemms::Fp32::kBlocks ||
                         (precision == Precision::kBf16 && gemms.bf16 != CpuGemms::Bf16::kEmulated);
  const int64_t parts_of_layers = by_blocks ? parts_of_packed : 3;
  constexpr int64_t kPartsOfHead = 3;
  const FlatParameters& parameters = shapes.parameters();
  int64_t of_layers = 0;
  for (const size_t index : LayerMatrices(parameters)) {
    const Parameter& matrix = parameters.all()[index];
    of_layers = std::max({of_layers, matrix.size, num_tokens * matrix.shape[1]});
  }
  const int64_t element_bytes = precision == Precision::kFp32 ? 4 : 2;
  const auto part = [&](int64_t elements) { return std::min(int64_t{8} << 20, elements * element_bytes); };
  return parts_of_layers * part(of_layers) +
         kPartsOfHead * part(shapes.config().vocab_size * shapes.config().hidden_size);
}

/// Of an MLP's GEMMs or the head's, whichever is more.
int64_t Fp8Copies(const MemoryRequest& request, int64_t num_tokens) {
  const Fp8Parts& parts = request.kinds.fp8;
  const ModelConfig& model = request.model;
  const bool on_cpu = request.device.is_cpu();
  int64_t bytes = 0;
  if (parts.mlp) {
    const int64_t wide = (model.activation == Activation::kSwiglu ? 2 : 1) * model.intermediate_size;
    bytes = std::max(Fp8Bytes(num_tokens, model.hidden_size, wide, on_cpu),
                     Fp8Bytes(num_tokens, model.intermediate_size, model.hidden_size, on_cpu));
  }
  if (parts.head) {
    const int64_t vocabulary = PaddedVocabulary(model.vocab_size, NumericsOf(request).vocabulary_multiple);
    const int64_t rows =
        std::min(num_tokens, HeadSliceRows(request.kinds.head_slice_logits, vocabulary, num_tokens));
    const int64_t weights = model.hidden_size * vocabulary;  // those of both directions are there at once
    bytes = std::max(bytes, Fp8Bytes(rows, model.hidden_size, vocabulary, on_cpu) + weights);
  }
  return bytes;
}

/// By which flash divides its sums where their order is fixed; 0: it is not.
int64_t MultiprocessorsOfFixedOrder(c10::Device device) {
  if (!at::globalContext().deterministicAlgorithms()) return 0;
  constexpr int64_t kOfLargestGpu = 148;  // a B200's: for a GPU that is not here
  const int64_t known = LimitsOf(device).multiprocessors;
  return known > 0 ? known : kOfLargestGpu;
}

int64_t AttentionScratch(const MemoryRequest& request, const std::vector<int32_t>& span_starts) {
  const ModelConfig& model = request.model;
  if (model.num_heads == 0) return 0;
  const Numerics numerics = NumericsOf(request);
  const AttentionShape shape = {span_starts.back(), model.num_heads, model.num_kv_heads, model.head_dim,
                                WindowOf(model, 0)};
  const SpanTable spans(span_starts);
  return AttentionWorkspaceBytes(AttentionBackendOf(numerics, shape, spans, request.device), shape,
                                 numerics.storage, spans, MultiprocessorsOfFixedOrder(request.device));
}

}  // namespace

ModelInput EqualSamples(int64_t samples, int64_t sequence_tokens) {
  const int64_t tokens = samples * sequence_tokens;
  ModelInput input;
  input.tokens_n = at::zeros({tokens}, at::kLong);
  input.positions_n = at::zeros({tokens}, at::kLong);
  input.labels_n = at::zeros({tokens}, at::kLong);
  for (int64_t i = 0; i <= samples; ++i) {
    input.span_starts.push_back(static_cast<int32_t>(i * sequence_tokens));
  }
  return input;
}

std::unique_ptr<LanguageModel> ShapesOf(const ModelFamilies& families, const MemoryRequest& request) {
  Numerics numerics = NumericsOf(request);
  if (request.device.is_cpu())
    numerics.attention = numerics.equal_spans = AttentionBackend::kAuto;  // its own is no GPU's
  auto shapes = std::make_unique<LanguageModel>(
      families.Of(request.model)
          .make(request.model, numerics, at::Device(at::kMeta), std::nullopt, request.tuning));
  shapes->set_activation_checkpointing(request.checkpointing);
  shapes->set_tbptt(request.tbptt);
  shapes->OffloadOnPaper(request.offload, request.device);
  if (request.sharding != Sharding::kNone && request.ranks > 1) ShardShapes(request, shapes.get());
  return shapes;
}

MemoryParts StateMemory(const ModelFamilies& families, const MemoryRequest& request) {
  return WithOptimizer(request, ShapesOf(families, request).get());
}

int64_t SnapshotBytes(const ModelFamilies& families, const MemoryRequest& request) {
  const auto shapes = ShapesOf(families, request);
  FlatParameters& parameters = shapes->parameters();
  const auto optimizer = MakeOptimizer(request.optimizers, &parameters, request.optimizer, /*seed=*/0);
  const auto copy_bytes = [&](const at::Tensor& live) {
    return HostCopyBytes(static_cast<int64_t>(live.nbytes()), request.device);
  };
  int64_t bytes = copy_bytes(parameters.values());
  for (const OptimizerState& state : optimizer->States()) bytes += copy_bytes(state.value);
  return bytes;
}

MemoryParts TrainingMemory(const ModelFamilies& families, const MemoryRequest& request,
                           const MicroBatchPasses& passes) {
  const bool on_cpu = request.device.is_cpu();
  if (!on_cpu) RequireGpuSupport(request.model);
  const auto shapes = ShapesOf(families, request);
  // GEMMs with epilogues ask it: HeldByModel looks.
  if (!on_cpu) shapes->parameters().set_product_chooser(std::make_shared<ProductChooser>());
  passes.run(shapes.get());
  MemoryParts memory = WithOptimizer(request, shapes.get());
  const int64_t all_tokens = passes.num_tokens(),
                tokens = request.tbptt > 0 ? std::min(request.tbptt, all_tokens) : all_tokens;
  if (on_cpu) {
    memory.products +=
        EstimateProducts(*shapes, request.precision, tokens) + LeftByQuantizing(*shapes, request);
  } else {
    memory.attention = AttentionScratch(request, passes.span_starts);
    const bool has_workspace = shapes->parameters().product_chooser()->asked();
    if (request.kinds.fp8.any() && !has_workspace) memory.products += kProductWorkspaceBytes;
  }
  memory.products += Fp8Copies(request, tokens);
  return memory;
}

MemoryParts TrainingMemory(const ModelFamilies& families, const MemoryRequest& request,
                           const ModelInput& micro_batch) {
  ModelInput input = micro_batch;
  input.pin = false;
  return TrainingMemory(
      families, request,
      MicroBatchPasses{.run = [&](LanguageModel* shapes) { shapes->LossAndGradients(input, 1.0); },
                       .span_starts = micro_batch.span_starts});
}

MemoryParts HeldByModel(LanguageModel& model) {
  FlatParameters& parameters = model.parameters();
  MemoryParts memory;
  memory.parameters = static_cast<int64_t>(parameters.values().nbytes());
  memory.frozen = parameters.frozen_bytes();
  if (!parameters.compute().is_same(parameters.values())) {
    memory.compute_copy = static_cast<int64_t>(parameters.compute().nbytes());
  }
  for (const FlatParameters::Fp32Copy& copy : parameters.fp32_copies()) {
    memory.parameters += static_cast<int64_t>(copy.values.nbytes());
  }
  memory.gradients = parameters.gradient_buffer().memory_bytes();
  if (parameters.gradient_buffer().given_away()) {
    memory.gradients += parameters.own_elements() * static_cast<int64_t>(sizeof(float));
  }
  const ModelMemory held = model.memory();
  memory.activations = held.activation_bytes;
  memory.logits = held.logits_bytes;
  memory.offloaded = model.offloaded_bytes();
  const ProductChooser* const chooser = parameters.product_chooser();
  if (chooser != nullptr && chooser->asked()) memory.products = kProductWorkspaceBytes;
  return memory;
}

}  // namespace trainwright
