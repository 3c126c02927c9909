/// What is left to do of a run when a process continues it: the process before may have been killed
/// between a checkpoint and what follows from it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lib/run/run_directory.h"
#include "lib/run/train_settings.h"

namespace trainwright {

/// Makes a run that goes on from a checkpoint read as if it had just saved it: records of later steps go, in
/// event files, too, `latest` points at the checkpoint, and it has its record. The run counts as not complete
/// from here on.
/// \param step of the checkpoint
/// \param evaluated as in CutMetrics
/// \throws Error{kIo, kBadInput}
void TakeUpRun(int64_t step, bool evaluated, RunDirectory* run);

/// The end of a run whose last step is taken.
struct RunEnd {
  int64_t step = 0;
  int64_t tokens_seen = 0;
  std::string reason = "complete";  ///< or "early stop"
};

/// Does what is not yet done of `latest`, copies, retention, records, reports and complete.json, as the
/// process that took the last step would have. Of a run that is complete nothing changes, but that copies
/// which the settings ask for and which are missing are made.
/// \param look as in CheckpointCopier::Finish
/// \returns the exit status: 0, or that of missing copies
/// \throws Error{kIo, kBadInput, kUsage}; what `look` throws
int FinishRun(const RunEnd& end, const TrainSettings& settings, RunDirectory* run,
              const std::function<void()>& look = {});

}  // namespace trainwright
