/// What a run's settings ask of its checkpoints beside writing them: copies, and which ones stay.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/checkpoint/checkpoint_copier.h"
#include "lib/checkpoint/retention.h"
#include "lib/run/run_directory.h"
#include "lib/run/train_settings.h"
#include "lib/run/upkeep_records.h"

namespace trainwright {

Retention RetentionOf(const TrainSettings& settings);

/// \param least_capacity of its queue, where the settings have less
/// \returns null where no copies are asked for
/// \throws Error{kUsage} on a folder of copies inside the run
std::unique_ptr<CheckpointCopier> MakeCopier(const TrainSettings& settings, const RunDirectory& run,
                                             size_t least_capacity = 0);

/// Queues the checkpoints up to `newest_step` whose copy no record mentions or is gone, and of folders the
/// newest, whose copy is compared with it: a process that was killed may not have copied them. The others
/// have their copy.
/// \param compares_all whether every copy in a folder is compared
void QueueCopies(const RunDirectory& run, int64_t newest_step, const UpkeepRecords& records,
                 bool compares_all, CheckpointCopier* copier);

}  // namespace trainwright
