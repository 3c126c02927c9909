#include "lib/train/step_passes.h"

#include <ATen/ops/zeros.h>

#include <type_traits>
#include <utility>

#include "lib/base/error.h"
#include "lib/optim/loss_sums.h"

namespace trainwright {
namespace {

/// Those of a step that are of one leaf.
StepBatches OfLeaf(const StepBatches& batches, int64_t leaf, int64_t leaves) {
  const auto count = static_cast<int64_t>(batches.micro_batches.size());
  TRAINWRIGHT_CHECK(count % leaves == 0);
  const auto own = [&](const auto& all) {
    const auto begin = all.begin() + leaf * (count / leaves);
    return std::decay_t<decltype(all)>(begin, begin + count / leaves);
  };
  return {.micro_batches = own(batches.micro_batches),
          .places = own(batches.places),
          .denominators = batches.denominators};
}

}  // namespace

StepPasses::StepPasses(LanguageModel* model, World* world, const GradientExchangeOptions& options)
    : model_(model), exchange_(world, &model->parameters(), options) {
  if (!exchange_.between_ranks()) return;
  model_->body().set_on_segment_gradients_done([this](size_t segment) { exchange_.SegmentDone(segment); });
}

StepPasses::~StepPasses() {
  if (exchange_.between_ranks()) model_->body().set_on_segment_gradients_done(nullptr);
}

void StepPasses::RunLeaf(const Objective& objective, const StepPass& pass, int64_t leaf, at::Tensor sums) {
  exchange_.BeginLeaf();
  const int64_t leaves = exchange_.leaves();
  StepPass own = pass;
  StepBatches batches;
  if (leaves > 1) {
    batches = OfLeaf(*pass.batches, leaf, leaves);
    own.batches = &batches;
  }
  if (leaf + 1 == leaves) own.last_backward = [this] { exchange_.LastBackwardBegins(); };
  TensorLossSums leaf_sums(std::move(sums));
  objective.Run(own, &leaf_sums);
  exchange_.EndLeaf();
}

PassesEnd StepPasses::Run(const Objective& objective, const StepPass& pass) {
  const int64_t leaves = exchange_.leaves(), terms = static_cast<int64_t>(objective.terms().size());
  PassesEnd end;
  const at::Tensor sums_lt =
      at::zeros({leaves, terms}, model_->parameters().values().options().dtype(at::kDouble));
  exchange_.BeginStep();
  try {
    for (int64_t leaf = 0; leaf < leaves; ++leaf) RunLeaf(objective, pass, leaf, sums_lt.select(0, leaf));
  } catch (...) {
    end.failure = std::current_exception();
  }
  exchange_.Finish(/*complete=*/!end.failure);
  end.sums = exchange_.AddUp(sums_lt);
  return end;
}

}  // namespace trainwright
