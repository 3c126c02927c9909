/// Runs that their launcher starts again, by the command line that began them, and what a process that
/// continues a run takes over from it before it opens anything.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/dist/world.h"
#include "lib/run/train_settings.h"
#include "lib/spec/cpu_gemms.h"

namespace trainwright {

/// Makes of the command line of a first start that of one that goes on: where the folder of --out holds a run
/// that has begun, it is resumed; else the run begins. Warns where --out does not say which run it was. What
/// only reports on a run, and what a user resumes, stays as it is.
/// \param restarts that there were, as RestartsFromEnvironment reports
/// \param world whose writer looks
/// \throws as World::Agree
TrainSettings SettingsAfterRestart(TrainSettings settings, int64_t restarts, World* world);

/// The threads of a run that a user resumes or a launcher starts again, where its bits depend on them
/// (--exact-world) and nobody gives --threads: those that it had.
/// \param world whose writer looks
/// \returns 0 where there are none to keep
/// \throws as World::Agree
int ThreadsToGoOnWith(const TrainSettings& settings, int64_t restarts, World* world);

/// The kernels of GEMMs on a CPU that such a run began with: those of its run.json, or of a run of before
/// there was a choice the ones of then.
/// \returns nullopt where there are none to keep
std::optional<CpuGemms> KernelsToGoOnWith(const TrainSettings& settings, int64_t restarts);

}  // namespace trainwright
