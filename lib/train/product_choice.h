/// The kernels that compute a run's GEMMs on a GPU: chosen before its first step, and read back by whoever
/// continues with it (lib/spec/product_choices.h).
#pragma once

#include <cstdint>
#include <functional>

#include "lib/dist/world.h"
#include "lib/model/language_model.h"
#include "lib/nn/linear/product_chooser.h"
#include "lib/run/run_directory.h"
#include "lib/run/train_settings.h"
#include "lib/spec/product_choices.h"
#include "lib/train/resolved_run.h"

namespace trainwright {

/// Lets the chooser try the kernels on one micro-batch of the plan's size, forward and backward, on tokens of
/// no meaning. It leaves gradients of zero; nothing is dropped and no step is counted, so that training goes
/// on as it would have from the choices alone.
/// \param chooser the model's
void TryProducts(const TrainPlan& plan, LanguageModel* model, ProductChooser* chooser);

/// What the ranks of a run compute with.
struct AgreedProducts {
  ProductChoices choices;
  bool are_new = false;  ///< of a trial
};

/// The writer's choices: those of before, or where it has none those of its trial. By all ranks together.
/// \param trial each rank's own, without a call of the world; empty: there is none
/// \throws as DoAlike where a trial throws; as World::Reduce
AgreedProducts AgreeOnProducts(World* world, const ProductChoices& before,
                               const std::function<ProductChoices()>& trial);

/// Gives the model what the run has chosen. Where that is nothing and no step was taken, tries the kernels
/// on one micro-batch of the run's size, forward and backward, and stores what it chose; all ranks take the
/// writer's choices. Nothing is tried under --deterministic and --exact-world, where no clock may decide, nor
/// of models whose loss reads no logits, nor where gradients are sharded or off-loaded; and with --auto-oom
/// a trial that ran out of memory chooses nothing. Then, for shapes that no such micro-batch has, and for a
/// run that went on without choices, the first candidates compute. By all ranks together, and so not within
/// work of DoAlike, after the model has its options and before the first step. Nothing on a CPU.
/// \param directory the writer's; null on the other ranks
/// \param steps_taken by the run
/// \param run has the choices of before, and gets those that are made, for its states
/// \throws Error{kIo} where they cannot be stored in run.json; as AgreeOnProducts
void ChooseProducts(const TrainSettings& settings, int64_t steps_taken, World* world,
                    const RunDirectory* directory, LanguageModel* model, ResolvedRun* run);

}  // namespace trainwright
