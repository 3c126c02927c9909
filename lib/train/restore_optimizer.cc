#include "lib/train/restore_optimizer.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/train/trainer.h"

namespace trainwright {

void RestoreOptimizer(const TrainerState& state, Optimizer* optimizer) {
  FlatParameters& parameters = *optimizer->parameters();
  const std::vector<OptimizerState> live = optimizer->States();
  const auto refuse = [&](const std::string& problem, const std::string& hint = "") {
    throw Error(ErrorCode::kBadInput, state.origin, problem, "", hint);
  };
  std::vector<const at::Tensor*> stored;
  bool is_of_model = false;  // as a state with a value for each element says
  for (const OptimizerState& own : live) {
    const auto found = std::find_if(state.optimizer.begin(), state.optimizer.end(),
                                    [&](const OptimizerState& other) { return other.name == own.name; });
    if (found == state.optimizer.end() || found->value.scalar_type() != own.value.scalar_type()) {
      refuse(std::string("has no tensor '") + own.name + "' of type " +
             c10::toString(own.value.scalar_type()));
    }
    const bool same_size = optimizer->is_sharded(own)
                               ? found->value.sizes() == at::IntArrayRef{parameters.elements()}
                               : found->value.sizes() == own.value.sizes();
    if (!same_size && is_of_model) {
      refuse("its optimizer's state '" + own.name +
                 "' is that of other parameters than have one in this version",
             "continue with the version that began the run, or begin another run with --init CHECKPOINT");
    }
    if (!same_size) refuse("its optimizer's state '" + own.name + "' belongs to a model of another size");
    is_of_model |= own.by_element;
    stored.push_back(&found->value);
  }
  if (state.optimizer.size() != live.size()) refuse("holds states of another optimizer");
  for (size_t i = 0; i < live.size(); ++i) {
    if (!optimizer->is_sharded(live[i])) {
      live[i].value.copy_(*stored[i]);
      continue;
    }
    parameters.shard()->ForEachPiece([&](const ShardLayout::Piece& piece) {
      live[i].value.narrow(0, piece.place, piece.size).copy_(stored[i]->narrow(0, piece.begin, piece.size));
    });
  }
  optimizer->set_steps(state.updates);
}

}  // namespace trainwright
