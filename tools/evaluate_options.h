/// The command line of `evaluate`. Free of torch: man page and completions come from it.
#pragma once

#include "lib/cli/tool.h"
#include "lib/eval/evaluate_settings.h"

namespace trainwright {

const ToolInfo& EvaluateInfo();
void DefineEvaluateOptions(CLI::App& app, EvaluateSettings* options);

}  // namespace trainwright
