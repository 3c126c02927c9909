/// What --compile makes of a run.
#pragma once

#include <memory>
#include <string>

#include "lib/model/language_model.h"
#include "lib/objective/objective.h"
#include "lib/spec/compile_mode.h"
#include "lib/train/resolved_run.h"
#include "lib/train/trainer.h"

namespace trainwright {

/// Why the passes of a run cannot be repeated as graphs, to follow "because"; empty: they can.
std::string WhyNoGraphs(const ResolvedRun& run, const Objective& objective);

/// Makes a model of the run's device repeat its passes as graphs where the mode asks for it and the run can,
/// and says where it cannot.
/// \param recorder of the device; null: it has none
/// \returns whether it does, which fills micro-batches up
/// \throws Error{kUsage} on kGraph of a run that cannot
bool RepeatPasses(CompileMode mode, const ResolvedRun& run, const Objective& objective,
                  std::unique_ptr<GraphRecorder> recorder, LanguageModel* model);

/// Before anything of the run is made.
/// \throws Error{kUsage} where its mode is kGraph and it cannot be
void RequireCompile(const ResolvedRun& run, const Objective& objective);

/// RepeatPasses, after all else that chooses how passes run.
/// \param run whose identity then says whether micro-batches are filled up
/// \throws as RepeatPasses
void ChooseCompile(CompileMode mode, const Objective& objective, std::unique_ptr<GraphRecorder> recorder,
                   LanguageModel* model, ResolvedRun* run);

/// Makes the trainer repeat its updates as graphs, too, from when its model repeats passes; to be called
/// after ChooseCompile. Nothing where the model never does.
/// \param recorder of its device; may be null where nothing is repeated
void RepeatUpdates(CompileMode mode, std::unique_ptr<GraphRecorder> recorder, Trainer* trainer);

/// Both, of the run's mode and device.
void ChooseGraphs(Trainer* trainer, ResolvedRun* run);

}  // namespace trainwright
