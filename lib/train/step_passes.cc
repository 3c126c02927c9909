#include "lib/train/step_passes.h"

#include <ATen/ops/zeros.h>

#include <memory>
#include <type_traits>
#include <utility>

#include "lib/base/error.h"
#include "lib/optim/loss_sums.h"

namespace trainwright {
namespace {

/// Those of a step that are of one of its equal parts.
StepBatches OfPart(const StepBatches& batches, int64_t part, int64_t parts) {
  const auto count = static_cast<int64_t>(batches.micro_batches.size());
  TRAINWRIGHT_CHECK(count % parts == 0);
  const auto own = [&](const auto& all) {
    const auto begin = all.begin() + part * (count / parts);
    return std::decay_t<decltype(all)>(begin, begin + count / parts);
  };
  return {.micro_batches = own(batches.micro_batches),
          .places = own(batches.places),
          .denominators = batches.denominators,
          .of_step = static_cast<size_t>(count)};
}

}  // namespace

StepPasses::StepPasses(LanguageModel* model, World* world, const GradientExchangeOptions& options)
    : model_(model), world_(world), exchange_(world, &model->parameters(), options) {
  if (!exchange_.between_ranks()) return;
  if (model->parameters().shard() != nullptr) {
    values_.emplace(world, &model->parameters(), options.bucket_bytes);
  }
  model_->body().set_on_segment_gradients_done([this](size_t segment) { exchange_.SegmentDone(segment); });
}

StepPasses::~StepPasses() {
  if (exchange_.between_ranks()) model_->body().set_on_segment_gradients_done(nullptr);
}

void StepPasses::Prepare(const Objective& objective) {
  const auto terms = static_cast<int64_t>(objective.terms().size());
  exchange_.Prepare(terms);
  if (values_) values_->Prepare();
  if (sums_lt_.defined()) return;
  sums_lt_ =
      at::zeros({exchange_.leaves(), terms}, model_->parameters().values().options().dtype(at::kDouble));
}

StepPasses::Parts StepPasses::PartsOf(const StepPass& pass) const {
  if (!exchange_.takes_rounds()) return {.leaves = exchange_.leaves()};
  return {.rounds = static_cast<int64_t>(pass.batches->micro_batches.size())};
}

void StepPasses::RunPart(const Objective& objective, const StepPass& pass, int64_t part, bool last,
                         at::Tensor sums) {
  exchange_.BeginLeaf();
  const Parts parts = PartsOf(pass);
  StepPass own = pass;
  StepBatches batches;
  if (const int64_t all = parts.leaves * parts.rounds; all > 1) {
    batches = OfPart(*pass.batches, part, all);
    own.batches = &batches;
    own.first_micro_batch = static_cast<size_t>(part) * batches.micro_batches.size();
  }
  if (last) own.last_backward = [this] { exchange_.LastBackwardBegins(); };
  TensorLossSums part_sums(std::move(sums));
  objective.Run(own, &part_sums);
  exchange_.EndLeaf();
}

PassesEnd StepPasses::Run(const Objective& objective, const StepPass& pass) {
  const Parts parts = PartsOf(pass);
  StepPass whole = pass;
  whole.leaves = parts.leaves;
  std::unique_ptr<StepContext> context;
  PassesEnd end;
  sums_lt_.zero_();
  exchange_.BeginStep();
  try {
    context = objective.Begin(whole, world_);
    whole.context = context.get();
  } catch (...) {
    end.failure = std::current_exception();
  }
  for (int64_t round = 0; round < parts.rounds; ++round) {
    if (round > 0) exchange_.BeginRound();
    try {
      for (int64_t leaf = 0; leaf < parts.leaves && !end.failure; ++leaf) {
        RunPart(objective, whole, round + leaf, /*last=*/leaf + 1 == parts.leaves, sums_lt_.select(0, leaf));
      }
    } catch (...) {
      end.failure = std::current_exception();
    }
    exchange_.Finish(/*complete=*/!end.failure);
  }
  end.sums = exchange_.AddUp(sums_lt_);
  if (values_) end.squares = exchange_.AddUpSquares();
  return end;
}

void StepPasses::ShareValues() {
  if (values_) values_->Share();
}

}  // namespace trainwright
