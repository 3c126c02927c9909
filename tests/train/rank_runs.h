/// Runs of a tiny model on ranks that are threads of this process.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"
#include "tests/train/thread_world.h"
#include "tests/train/tiny_training.h"

namespace trainwright::test {

/// What of a run does not depend on who trains it.
struct RankRunSetup {
  const ShardSet* set = nullptr;
  TrainPlan plan;  ///< as one process has it
  bool tie_embeddings = false;
  bool defer = false;  ///< as of Trainer
  int64_t bucket_bytes = 4096;
  /// What trains instead of the model; null: itself.
  std::function<std::unique_ptr<LanguageModel>(World* world, LanguageModel* model)> wrap = {};
};

/// Where a run stands on one rank.
struct RankPoint {
  at::Tensor weights;
  TrainerState state;
  std::vector<StepReport> reports = {};  ///< of the steps since it began or went on

  std::string sha256() const {
    return HexEncode(Sha256Of({static_cast<const uint8_t*>(weights.const_data_ptr()), weights.nbytes()}));
  }
};

/// A run as one of the ranks has it.
struct RankRun {
  RankRun(const RankRunSetup& setup, World* world) : stream(setup.set, setup.plan.stream_options()) {
    TrainPlan plan = setup.plan;
    plan.ranks = world->size();
    plan.accum = setup.plan.accum / plan.ranks;
    ModelConfig config = TinyModel();
    config.tie_embeddings = setup.tie_embeddings;
    model = MakeModel(Families(), config, plan.precision, at::Device(at::kCPU), plan.seed,
                      AttentionBackend::kAuto, plan.tuning);
    for (const Parameter& parameter : model->parameters().all()) {
      if (parameter.name.ends_with("lora_B.weight")) at::Tensor(parameter.value).fill_(0.03);
    }
    model->parameters().RefreshCompute();
    if (setup.wrap) wrapper = setup.wrap(world, model.get());
    TrainerParts parts = PartsOf(wrapper ? wrapper.get() : model.get(), &stream, plan);
    parts.world = world;
    parts.bucket_bytes = setup.bucket_bytes;
    trainer = std::make_unique<Trainer>(std::move(parts), plan, at::Device(at::kCPU), setup.defer);
  }
  RankPoint point() const {
    RankPoint point = {.weights = model->parameters().values().clone(), .state = trainer->state()};
    for (OptimizerState& state : point.state.optimizer) state.value = state.value.clone();
    return point;
  }
  void GoOnFrom(const RankPoint& point) {
    model->parameters().values().copy_(point.weights);
    model->parameters().RefreshCompute();
    trainer->Restore(point.state);
  }

  std::unique_ptr<LanguageModel> model, wrapper;
  SampleStream stream;
  std::unique_ptr<Trainer> trainer;
};

/// Takes steps on some ranks.
/// \param from where another run stands; null: from the beginning
/// \returns by rank
inline std::vector<RankPoint> TakeSteps(const RankRunSetup& setup, int64_t ranks, int steps,
                                        const RankPoint* from = nullptr) {
  ThreadWorld world(ranks);
  return world.Run([&](World* own) {
    RankRun run(setup, ranks == 1 ? Solo() : own);
    if (from != nullptr) run.GoOnFrom(*from);
    std::vector<StepReport> reports;
    for (int step = 0; step < steps; ++step) reports.push_back(run.trainer->Step());
    RankPoint point = run.point();
    point.reports = std::move(reports);
    return point;
  });
}

}  // namespace trainwright::test
