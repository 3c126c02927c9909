/// Which options of `evaluate` go together.
#pragma once

#include "lib/eval/evaluate_settings.h"

namespace trainwright {

/// Whether the metric has what it measures on, nothing that means nothing to it, and bounds that it can
/// reach. Opens no file.
/// \throws Error{kUsage} naming the flag
void CheckEvaluateSettings(const EvaluateSettings& settings);

}  // namespace trainwright
