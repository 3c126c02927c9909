/// Which options of `evaluate` go together.
#pragma once

#include <vector>

#include "lib/eval/evaluate_settings.h"
#include "lib/report/option_value.h"

namespace trainwright {

/// Empties those inputs of which the environment or a file may speak for other runs: what the metric has no
/// use for, and, of a model, vectors and a run, what gives way to another of higher precedence. Those of the
/// command line, and those that nothing decides between, stay for CheckEvaluateSettings.
/// \param options of evaluate, which say who gave what
void LeaveOutOtherInputs(const std::vector<OptionValue>& options, EvaluateSettings* settings);

/// Whether the metric has what it measures on, nothing that means nothing to it, and bounds that it can
/// reach. Opens no file.
/// \throws Error{kUsage} naming the flag
void CheckEvaluateSettings(const EvaluateSettings& settings);

}  // namespace trainwright
