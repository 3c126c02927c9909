// What a dry run says of a GPU's memory, on a machine without one: sizes against those of a model that ran on
// the CPU, and against formulas written down from the layers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "lib/loading/packed_batch.h"
#include "lib/nn/attention/torch_attention.h"
#include "lib/objective/perplexity.h"
#include "lib/optim/adamw.h"
#include "lib/train/dry_run.h"
#include "tests/model/families.h"
#include "tests/train/tiny_training.h"

namespace trainwright {
namespace {

using testing::HasSubstr;

/// Spans of these lengths; the last token of each has no label.
PackedBatch BatchOf(const std::vector<size_t>& lengths) {
  PackedBatch batch;
  for (const size_t length : lengths) {
    batch.AppendSpan(std::vector<uint32_t>(length, 1), kNoId);
  }
  return batch;
}

DryRunRequest OnGpu(Precision precision) {
  return {.model = test::TinyModel(),
          .plan = test::TinyPlan(precision),
          .device = at::Device(at::kCUDA),
          .steps = 1,
          .optimizers = BuiltInOptimizers(),
          .objectives = BuiltInObjectives()};
}

TEST(GpuNeedsTest, InFp32TheyAreWhatAModelOnTheCpuHolds) {
  const PackedBatch batch = BatchOf({70, 5, 165});
  const DryRunRequest request = OnGpu(Precision::kFp32);
  const auto model = MakeModel(test::Families(), request.model, Precision::kFp32, at::Device(at::kCPU), 1);
  AdamW optimizer(&model->parameters(), {});
  model->LossAndGradients(ToModelInput(batch), 1.0);
  const MemoryNeeds needs = GpuNeeds(test::Families(), request, batch);
  EXPECT_EQ(needs.parameters, static_cast<int64_t>(model->parameters().values().nbytes()));
  EXPECT_EQ(needs.gradients, static_cast<int64_t>(model->parameters().gradients().nbytes()));
  EXPECT_EQ(needs.optimizer, optimizer.state_bytes());
  EXPECT_EQ(needs.compute_copy, 0);
  EXPECT_EQ(needs.activations, model->memory().activation_bytes);
  EXPECT_EQ(needs.logits, model->memory().logits_bytes);
}

TEST(GpuNeedsTest, InBf16TheyFollowFromTheLayers) {
  constexpr int64_t kRows = 240, kLabels = 237, kFp32 = 4, kBf16 = 2;
  const ModelConfig model = test::TinyModel();
  const int64_t width = model.hidden_size, wide = model.intermediate_size,
                query = model.num_heads * model.head_dim,
                row = query + 2 * model.num_kv_heads * model.head_dim;
  const MemoryNeeds needs = GpuNeeds(test::Families(), OnGpu(Precision::kBf16), BatchOf({70, 5, 165}));
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
  EXPECT_EQ(needs.logits, kLabels * kBf16 * (model.vocab_size + 2 * width));
}

TEST(GpuNeedsTest, AttentionsScratchIsThatOfTheBackend) {
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

TEST(GpuNeedsTest, ARunThatDoesNotFitIsToldWithoutTouchingTheGpu) {
  const test::MemoryShardSet set = test::CountingDocuments();
  DryRunRequest request = OnGpu(Precision::kBf16);
  request.gpu_available_bytes = 1000;
  SampleStream stream(&set, request.plan.stream_options());
  const DryRunReport report = DryRun(test::Families(), request, &stream);
  EXPECT_EQ(report.measurement, Measurement::kShapes);
  EXPECT_FALSE(report.fits());
  EXPECT_EQ(report.missing_bytes(), report.memory.of_model() - 1000);
  EXPECT_GT(report.memory.attention, 0);
  EXPECT_EQ(report.memory.total(), report.memory.of_model() + report.memory.of_host());
  const std::string text = FormatDryRun(report);
  EXPECT_THAT(text, HasSubstr("attention's scratch"));
  EXPECT_THAT(text, HasSubstr("free on the GPU"));
  EXPECT_THAT(text, HasSubstr("Nothing was run on the GPU"));
  const nlohmann::ordered_json json = EncodeDryRun(report);
  EXPECT_EQ(json.at("memory_bytes").at("on_gpu"), report.memory.of_model());
  EXPECT_EQ(json.at("measured"), "shapes");
}

}  // namespace
}  // namespace trainwright
