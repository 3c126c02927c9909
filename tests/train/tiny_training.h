/// A model, documents and a plan so small that a test trains in milliseconds.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lib/model/language_model.h"
#include "lib/objective/objective_registry.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/spec/llama_family.h"
#include "lib/train/plan_objective.h"
#include "lib/train/trainer.h"
#include "tests/model/families.h"
#include "tests/support/memory_shard_set.h"

namespace trainwright::test {

inline constexpr uint32_t kTinyVocab = 17;

inline ModelConfig TinyModel() {
  ModelConfig config;
  config.family = &LlamaFamily();
  config.vocab_size = kTinyVocab;
  config.hidden_size = 32;
  config.intermediate_size = 48;
  config.num_layers = 2;
  config.num_heads = 2;
  config.num_kv_heads = 1;
  config.head_dim = 16;
  config.max_positions = 32;
  return config;
}

/// Documents that count upwards modulo the vocabulary, from different starts and in different lengths: what
/// follows a token is certain, so a model that learns brings the loss near zero.
inline MemoryShardSet CountingDocuments(uint32_t chunks = 24, RecordKind kind = RecordKind::kLm) {
  std::vector<Chunk> all;
  for (uint32_t c = 0; c < chunks; ++c) {
    Chunk chunk;
    for (const uint32_t length : {5 + c % 7, 20 - c % 7, 15u}) {
      chunk.segments.push_back({.tokens = length, .source_bytes = length});
      for (uint32_t i = 0; i < length; ++i) chunk.tokens.push_back((c * 5 + length + i) % kTinyVocab);
    }
    all.push_back(std::move(chunk));
  }
  return MemoryShardSet(std::move(all), 4, kTinyVocab, kind);
}

inline TrainPlan TinyPlan(Precision precision = Precision::kFp32) {
  TrainPlan plan;
  plan.batch = 2;
  plan.accum = 2;
  plan.sequence_tokens = 16;
  plan.window_chunks = 5;
  plan.seed = 3;
  plan.precision = precision;
  plan.schedule = {.kind = ScheduleKind::kCosine, .peak_lr = 1e-2, .warmup_steps = 2, .total_steps = 60};
  return plan;
}

inline TrainerParts PartsOf(LanguageModel* model, SampleLoader* stream, const TrainPlan& plan,
                            const OptimizerRegistry& optimizers = BuiltInOptimizers(),
                            const ObjectiveRegistry& objectives = BuiltInObjectives()) {
  return {.model = model,
          .loaders = {{kMainLoader, stream}},
          .objective = ObjectiveOf(plan, objectives),
          .optimizer = MakeOptimizer(optimizers, &model->parameters(), plan.optimizer, plan.seed)};
}

/// A model, a stream and a trainer of one run on the CPU.
struct TrainingRun {
  /// \param defer as of Trainer
  TrainingRun(const ShardSet& set, const TrainPlan& plan, bool defer = false)
      : model(MakeModel(test::Families(), TinyModel(), plan.precision, at::Device(at::kCPU), plan.seed,
                        AttentionBackend::kAuto, plan.tuning)),
        stream(&set, plan.stream_options()),
        trainer(PartsOf(model.get(), &stream, plan), plan, at::Device(at::kCPU), defer) {}

  std::unique_ptr<LanguageModel> model;
  SampleStream stream;
  Trainer trainer;
};

}  // namespace trainwright::test
