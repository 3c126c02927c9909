/// Runs of a tiny model on ranks that are threads of this process.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"
#include "tests/train/thread_world.h"
#include "tests/train/tiny_training.h"

namespace trainwright::test {

/// Documents, and among them chunks of a single token, of which no sample has a label.
inline MemoryShardSet HalfWithoutLabels() {
  const MemoryShardSet counting = CountingDocuments();
  std::vector<Chunk> chunks;
  for (uint64_t i = 0; i < counting.chunks(); ++i) {
    Chunk chunk;
    const uint32_t length = 9 + static_cast<uint32_t>(i % 7);
    chunk.segments = {{.tokens = length, .source_bytes = length}};
    for (uint32_t t = 0; t < length; ++t) {
      chunk.tokens.push_back((static_cast<uint32_t>(i) * 5 + t) % kTinyVocab);
    }
    chunks.push_back(chunk);
    chunks.push_back({.segments = {{.tokens = 1, .source_bytes = 1}}, .tokens = {1}});
  }
  return MemoryShardSet(std::move(chunks), 4, kTinyVocab);
}

/// Passes everything on to a model, but has the gradients of some micro-batches overflow, as fp16's do, while
/// the loss scale is above a limit.
class SometimesOverflowing final : public LanguageModel {
 public:
  explicit SometimesOverflowing(LanguageModel* model, double most_scale = 1024)
      : LanguageModel(model->shared_body()), most_scale_(most_scale) {}
  LossSum LossAndGradients(const ModelInput& input, const GradientScale& scale) override {
    const bool some = input.tokens_n[0].item<int64_t>() % 3 == 0;
    // A step has some 180 labels, by which the scale is divided.
    const double on_device = scale.on_device.defined() ? scale.on_device.item<double>() : 1.0;
    const bool overflows = some && scale.factor * on_device > most_scale_ / 180;
    if (overflows) parameters().Gradient(0).view({-1})[0] = std::numeric_limits<float>::infinity();
    return LanguageModel::LossAndGradients(input, scale);
  }

 private:
  double most_scale_;
};

/// What of a run does not depend on who trains it.
struct RankRunSetup {
  const ShardSet* set = nullptr;
  TrainPlan plan;  ///< as one process has it
  ModelConfig model = TinyModel();
  bool tie_embeddings = false;
  bool defer = false;  ///< as of Trainer
  int64_t bucket_bytes = 4096;
  /// What trains instead of the model; null: itself.
  std::function<std::unique_ptr<LanguageModel>(World* world, LanguageModel* model)> wrap = {};
};

/// A run that a test takes, by its name.
struct RankCase {
  std::string name;
  TrainPlan plan;
  bool tie_embeddings = false, defer = false, few_labels = false, overflowing = false;
};

/// Where a run stands on one rank, with all that is sharded whole.
struct RankPoint {
  at::Tensor weights;
  TrainerState state;
  std::vector<StepReport> reports = {};  ///< of the steps since it began or went on

  std::string sha256() const {
    return HexEncode(Sha256Of({static_cast<const uint8_t*>(weights.const_data_ptr()), weights.nbytes()}));
  }
};

/// Expects that a run stands, bit for bit, where another does; the steps that `point` tells of are the
/// other's last ones.
/// \param of says which run it is, where it does not
inline void ExpectSamePoint(const RankPoint& point, const RankPoint& expected, const std::string& of) {
  EXPECT_EQ(point.sha256(), expected.sha256()) << of;
  ASSERT_EQ(point.state.optimizer.size(), expected.state.optimizer.size()) << of;
  for (size_t i = 0; i < expected.state.optimizer.size(); ++i) {
    EXPECT_TRUE(at::equal(point.state.optimizer[i].value, expected.state.optimizer[i].value)) << of;
  }
  EXPECT_EQ(point.state.scaler, expected.state.scaler) << of;
  EXPECT_EQ(point.state.updates, expected.state.updates) << of;
  EXPECT_EQ(point.state.tokens_seen, expected.state.tokens_seen) << of;
  EXPECT_EQ(point.state.data().cursor, expected.state.data().cursor) << of;
  for (size_t back = 1; back <= point.reports.size(); ++back) {
    const StepReport& report = point.reports[point.reports.size() - back];
    const StepReport& other = expected.reports[expected.reports.size() - back];
    EXPECT_EQ(report.loss_nats, other.loss_nats) << of << ", step " << report.step;
    // In fp16 it may be no number, which equals nothing.
    const bool overflowed = std::isnan(other.grad_norm) && std::isnan(report.grad_norm);
    EXPECT_EQ(overflowed ? 0 : report.grad_norm, overflowed ? 0 : other.grad_norm)
        << of << ", step " << report.step;
    EXPECT_EQ(report.skipped, other.skipped) << of << ", step " << report.step;
  }
}

/// What all ranks have of a tensor together. A call that all ranks make.
inline at::Tensor WholeOf(World* world, const ShardLayout& layout, const at::Tensor& shard) {
  const int64_t ranks = layout.ranks(), most = layout.SizeOf(0);
  const at::Tensor padded = at::zeros({most}, shard.options()),
                   all = at::zeros({ranks * most}, shard.options());
  padded.narrow(0, 0, shard.numel()).copy_(shard);
  world->collectives()->BeginGather(padded, all)->Wait();
  at::Tensor whole = at::zeros({layout.elements()}, shard.options());
  for (int64_t block = 0; block * kReductionBlock < layout.elements(); ++block) {
    const int64_t begin = block * kReductionBlock, rank = block % ranks;
    const int64_t size = std::min(kReductionBlock, layout.elements() - begin);
    whole.narrow(0, begin, size).copy_(all.narrow(0, rank * most + block / ranks * kReductionBlock, size));
  }
  return whole;
}

/// A run as one of the ranks has it.
struct RankRun {
  /// \param from where another run stands; null: from the beginning
  RankRun(const RankRunSetup& setup, World* own_world, const RankPoint* from = nullptr) : world(own_world) {
    TrainPlan plan = setup.plan;
    plan.ranks = world->size();
    plan.accum = setup.plan.accum / plan.ranks;
    loaders = ObjectiveOf(plan, BuiltInObjectives())->OpenLoaders(setup.set, plan.stream_options(), {});
    ModelConfig config = setup.model;
    config.tie_embeddings = setup.tie_embeddings;
    model = MakeModel(Families(), config, plan.precision, at::Device(at::kCPU), plan.seed,
                      AttentionBackend::kAuto, plan.tuning);
    for (const Parameter& parameter : model->parameters().all()) {
      if (parameter.name.ends_with("lora_B.weight")) at::Tensor(parameter.value).fill_(0.03);
    }
    if (from != nullptr) model->parameters().values().copy_(from->weights);
    model->parameters().RefreshCompute();
    if (plan.sharding() != Sharding::kNone) {
      const ShardLayout layout(model->parameters().elements(), world->rank(), world->size());
      model->parameters().Shard(layout, plan.gives_gradients_away());
    }
    if (setup.wrap) wrapper = setup.wrap(world, model.get());
    SampleLoader* const main = loaders.at(kMainLoader).get();
    TrainerParts parts = PartsOf(wrapper ? wrapper.get() : model.get(), main, plan);
    parts.loaders = LoadersOf(loaders);
    parts.world = world;
    parts.bucket_bytes = setup.bucket_bytes;
    trainer = std::make_unique<Trainer>(std::move(parts), plan, at::Device(at::kCPU), setup.defer);
    if (from != nullptr) trainer->Restore(from->state);
  }
  /// A call that all ranks make.
  RankPoint point() const {
    const FlatParameters& parameters = model->parameters();
    RankPoint point = {.weights = parameters.values().clone(), .state = trainer->state()};
    if (parameters.masters_sharded())
      point.weights = WholeOf(world, *parameters.shard(), parameters.values());
    for (OptimizerState& state : point.state.optimizer) {
      state.value = trainer->optimizer().is_sharded(state) ? WholeOf(world, *parameters.shard(), state.value)
                                                           : state.value.clone();
    }
    return point;
  }

  World* world;
  std::unique_ptr<LanguageModel> model, wrapper;
  OpenedLoaders loaders;
  std::unique_ptr<Trainer> trainer;
};

/// Takes steps on some ranks.
/// \param from where another run stands; null: from the beginning
/// \returns by rank
inline std::vector<RankPoint> TakeSteps(const RankRunSetup& setup, int64_t ranks, int steps,
                                        const RankPoint* from = nullptr) {
  ThreadWorld world(ranks);
  return world.Run([&](World* own) {
    RankRun run(setup, ranks == 1 ? Solo() : own, from);
    std::vector<StepReport> reports;
    for (int step = 0; step < steps; ++step) reports.push_back(run.trainer->Step());
    RankPoint point = run.point();
    point.reports = std::move(reports);
    return point;
  });
}

/// Expects that two and four ranks end where one process does.
/// \param alone where it ends
inline void ExpectSameOnRanks(const RankRunSetup& setup, int steps, const RankPoint& alone) {
  for (const int64_t ranks : {2, 4}) {
    const std::vector<RankPoint> points = TakeSteps(setup, ranks, steps);
    for (size_t rank = 0; rank < points.size(); ++rank) {
      ExpectSamePoint(points[rank], alone, "rank " + std::to_string(rank) + " of " + std::to_string(ranks));
    }
  }
}

/// Expects that a run whose number of ranks changes on the way ends where one process does.
/// \param parts of the run, one after the other: ranks and their steps
/// \param alone where the process ends
inline void ExpectSameWhereRanksChange(const RankRunSetup& setup,
                                       const std::vector<std::pair<int64_t, int>>& parts,
                                       const RankPoint& alone) {
  std::vector<RankPoint> points;
  for (const auto& [ranks, steps] : parts) {
    const std::vector<RankPoint> before = std::move(points);
    points = TakeSteps(setup, ranks, steps, before.empty() ? nullptr : &before.back());
  }
  ExpectSamePoint(points.front(), alone, "the last part");
}

}  // namespace trainwright::test
