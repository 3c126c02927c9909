/// Which checkpoints of a run stay on the disk.
#pragma once

#include <cstdint>

#include "lib/checkpoint/checkpoint_copier.h"
#include "lib/run/run_directory.h"

namespace trainwright {

/// Which checkpoints of a run stay.
struct Retention {
  int64_t newest = 3;  ///< 0: all
  /// Besides these, of the lowest evaluation loss of their own, on the data that the newest is evaluated on;
  /// the link `best` points at the first.
  int64_t best = 0;
  /// Whether those that have a copy go, but for the best and the newest that a run resumes from.
  bool delete_copied = false;
};

/// Deletes the checkpoints that do not stay.
/// \param newest_step the one just written
/// \param copier null: no copies are made. What waits for its copy, or for the record of it, stays.
/// \throws Error{kIo}
void ApplyRetention(RunDirectory* run, const Retention& retention, int64_t newest_step,
                    const CheckpointCopier* copier = nullptr);

}  // namespace trainwright
