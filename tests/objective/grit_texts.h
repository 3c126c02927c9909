/// Steps of records and rows whose texts follow from their numbers, so that they are the same however a step
/// is divided; and the contrastive loss of such a step by its definition.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/formats/tokenizer_identity.h"
#include "lib/objective/grit_objective.h"
#include "lib/objective/model_input.h"
#include "lib/optim/loss_sums.h"
#include "lib/spec/built_in_objectives.h"
#include "tests/nn/contrastive_reference.h"
#include "tests/support/support.h"

namespace trainwright::test {

/// The objective of some options of its own; the others have their defaults.
inline std::unique_ptr<GritObjective> GritOf(const OwnOptions& own) {
  const OwnOptions all = WithDescribed(own, GritDescription().own, ErrorCode::kUsage, "grit");
  return std::make_unique<GritObjective>(GritOptionsOf(all, /*seed=*/3));
}

/// Which texts a step has.
struct GritStepShape {
  int64_t vocabulary = 0;
  int64_t queries = 0;
  int64_t every_row = 0;  ///< how-manieth records have a row to generate; 0: none
  bool records = true;    ///< else rows alone, as many as queries
};

/// Appends a text of keyed tokens; without labels but that of a row.
inline void AppendText(TextUse use, uint32_t record, uint64_t key, int64_t length, uint32_t first_pooled,
                       int64_t vocabulary, PackedBatch* batch) {
  const Rng rng(TestSeed(), "grit text", key);
  std::vector<uint32_t> tokens;
  for (int64_t i = 0; i < length; ++i) {
    const uint64_t bits = rng.Bits(static_cast<uint64_t>(i));
    tokens.push_back(static_cast<uint32_t>(bits % static_cast<uint64_t>(vocabulary)));
  }
  std::vector<uint8_t> predicted(tokens.size(), 0);
  if (use == TextUse::kGenerative) {
    // The first third is a prompt.
    std::fill(predicted.begin() + static_cast<ptrdiff_t>(tokens.size() / 3), predicted.end(), uint8_t{1});
  }
  batch->AppendSpan(std::span<const uint32_t>(tokens), kNoId, predicted);
  batch->notes.push_back(
      {.use = use, .first_pooled = first_pooled, .record = record, .text_hash = 1000 + key});
}

/// Record `number` of a step: one or two positives, none to two negatives.
inline void AppendRecord(uint64_t number, uint32_t record, int64_t vocabulary, PackedBatch* batch) {
  const uint64_t key = 100 * number;
  const auto r = static_cast<int64_t>(number);
  AppendText(TextUse::kQuery, record, key, 2 + r % 5, static_cast<uint32_t>(number % 2), vocabulary, batch);
  for (uint64_t k = 0; k < 1 + number % 4 / 3; ++k) {
    AppendText(TextUse::kPositive, record, key + 1 + k, 3 + (r + static_cast<int64_t>(k)) % 7,
               static_cast<uint32_t>(number % 3), vocabulary, batch);
  }
  for (uint64_t k = 0; k < number % 3; ++k) {
    AppendText(TextUse::kNegative, record, key + 11 + k, 4 + r % 6, 0, vocabulary, batch);
  }
  ++batch->num_labels;
}

/// Samples `first` to `first + count` of a step.
inline PackedBatch GritBatchOf(const GritStepShape& shape, int64_t first, int64_t count) {
  PackedBatch batch;
  if (shape.records) {
    for (int64_t i = 0; i < count; ++i) {
      AppendRecord(static_cast<uint64_t>(first + i), static_cast<uint32_t>(i), shape.vocabulary, &batch);
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t number = first + i;
    const bool has_row = !shape.records || (shape.every_row > 0 && number % shape.every_row == 0);
    if (!has_row) continue;
    AppendText(TextUse::kGenerative, static_cast<uint32_t>(i), static_cast<uint64_t>(100 * number + 50),
               6 + number % 9, 0, shape.vocabulary, &batch);
  }
  return batch;
}

/// Samples `first` to `end` of a step, in micro-batches of `chunk`; the denominators are those of the whole.
inline StepBatches GritStepOf(const GritObjective& objective, const GritStepShape& shape, int64_t chunk,
                              int64_t first, int64_t end) {
  StepBatches step;
  for (int64_t begin = first; begin < end; begin += chunk) {
    step.micro_batches.push_back(GritBatchOf(shape, begin, std::min(chunk, end - begin)));
    step.places.push_back({{.index = begin}});
  }
  step.denominators.assign(objective.terms().size(), 0);
  for (int64_t begin = 0; begin < shape.queries; begin += chunk) {
    const std::vector<int64_t> counts =
        objective.Count(GritBatchOf(shape, begin, std::min(chunk, shape.queries - begin)));
    for (size_t i = 0; i < counts.size(); ++i) step.denominators[i] += counts[i];
  }
  return step;
}

inline StepBatches GritStepOf(const GritObjective& objective, const GritStepShape& shape, int64_t chunk) {
  return GritStepOf(objective, shape, chunk, 0, shape.queries);
}

/// What the passes of a step make.
struct StepMade {
  at::Tensor gradients;      ///< of all that is trained
  std::vector<double> sums;  ///< of the terms
};

/// The passes of a rank: gradients are the model's, sums those of the terms, on its device.
inline at::Tensor RunPasses(const GritObjective& objective, LanguageModel* model, const StepBatches& step,
                            World* world = Solo(), double loss_scale = 1, const at::Tensor& on_device = {}) {
  StepPass pass = {.model = model, .batches = &step, .loss_scale = loss_scale, .seed = 9, .step = 2};
  pass.loss_scale_on_device = on_device;
  model->parameters().ZeroGradients();
  const std::unique_ptr<StepContext> context = objective.Begin(pass, world);
  pass.context = context.get();
  at::Tensor sums = at::zeros({static_cast<int64_t>(objective.terms().size())},
                              at::TensorOptions(at::kDouble).device(model->parameters().values().device()));
  TensorLossSums loss_sums(sums);
  objective.Run(pass, &loss_sums);
  return sums;
}

/// What they make.
inline StepMade TakePasses(const GritObjective& objective, LanguageModel* model, const StepBatches& step,
                           World* world = Solo(), double loss_scale = 1, const at::Tensor& on_device = {}) {
  const at::Tensor sums = RunPasses(objective, model, step, world, loss_scale, on_device).cpu();
  StepMade made = {.gradients = model->parameters().gradients().clone(), .sums = {}};
  for (int64_t i = 0; i < sums.numel(); ++i) made.sums.push_back(sums[i].item<double>());
  return made;
}

/// The vector of each text of a step by itself, in fp64.
struct DenseVectors {
  at::Tensor queries_qd, passages_pd;
  ContrastiveGroups groups;
};

/// The pooled rows of a text, weighted one by one.
inline at::Tensor PooledSlowly(const std::string& pooling, const at::Tensor& rows_nd, int64_t first_pooled) {
  const at::Tensor rows = rows_nd.to(at::kDouble);
  if (pooling == "cls") return rows[0];
  if (pooling == "lasttoken") return rows[rows.size(0) - 1];
  at::Tensor sum = at::zeros({rows.size(1)}, at::kDouble);
  double weights = 0;
  for (int64_t row = first_pooled; row < rows.size(0); ++row) {
    const double weight = pooling == "mean" ? 1.0 : static_cast<double>(row - first_pooled + 1);
    sum = sum.add(rows[row], weight);
    weights += weight;
  }
  return sum.div(weights);
}

/// Each text goes through the body alone.
/// \param projection called with a pooled vector; null: none
inline DenseVectors DenseVectorsOf(LanguageModel* model, const PackedBatch& batch, const std::string& pooling,
                                   AttentionMask mask,
                                   const std::function<at::Tensor(const at::Tensor&)>& projection = {}) {
  const ModelInput packed = ToModelInput(batch);
  std::vector<at::Tensor> queries, passages;
  DenseVectors dense;
  dense.groups.first_passage.push_back(0);
  for (size_t span = 0; span < batch.notes.size(); ++span) {
    const SpanNote& note = batch.notes[span];
    if (note.use == TextUse::kGenerative) continue;
    const int64_t begin = packed.span_starts[span], length = packed.span_starts[span + 1] - begin;
    BodyInput alone;
    alone.tokens_n = packed.tokens_n.narrow(0, begin, length).clone();
    alone.positions_n = packed.positions_n.narrow(0, begin, length).clone();
    alone.span_starts = {0, static_cast<int32_t>(length)};
    alone.mask = mask;
    at::Tensor vector =
        PooledSlowly(pooling, model->body().Forward(alone, Keep::kNothing), note.first_pooled);
    if (projection) vector = projection(vector);
    vector = vector.div(vector.norm());
    if (note.use == TextUse::kQuery) {
      queries.push_back(vector);
      dense.groups.positives.push_back(0);
      dense.groups.first_passage.push_back(dense.groups.first_passage.back());
    } else {
      passages.push_back(vector);
      dense.groups.positives.back() += note.use == TextUse::kPositive ? 1 : 0;
      ++dense.groups.first_passage.back();
    }
  }
  dense.queries_qd = at::stack(queries);
  dense.passages_pd = at::stack(passages);
  return dense;
}

}  // namespace trainwright::test
