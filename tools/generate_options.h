/// The command line of `generate`. Free of torch: man page and completions come from it.
#pragma once

#include "lib/cli/tool.h"
#include "lib/eval/generate_settings.h"

namespace trainwright {

const ToolInfo& GenerateInfo();
void DefineGenerateOptions(CLI::App& app, GenerateSettings* settings);

}  // namespace trainwright
