/// What `train` does instead of training, of which it does one thing at a time.
#pragma once

#include <vector>

#include "lib/report/option_value.h"
#include "lib/run/train_settings.h"

namespace trainwright {

/// Of --report, --status, --merge and --average: refuses two of them, one of them beside --dry-run or
/// --explain, and options of the command line that it does not use. What is set elsewhere may be for several
/// runs.
/// \param options of the process
/// \throws Error{kUsage}
void CheckInsteadOfTraining(const TrainSettings& settings, const std::vector<OptionValue>& options);

}  // namespace trainwright
