/// The one list of the suite's tools: documentation, completions and their tests cover what is listed here.
#pragma once

#include <vector>

#include "lib/cli/tool.h"

namespace trainwright {

struct ToolDefinition {
  const ToolInfo* info;
  DefineOptions
      define;  ///< defines the options on an app, bound to variables that live as long as this object
};

/// In the order of the pipeline.
std::vector<ToolDefinition> AllTools();

}  // namespace trainwright
