#include <string>
#include <vector>

#include "lib/cli/engine.h"
#include "lib/cli/tool.h"
#include "tools/all_tools.h"

// bin/<tool> of a tool whose engine needs LibTorch, which is in TRAINWRIGHT_TORCH_FOLDER; TRAINWRIGHT_TOOL is
// its name.
int main(int argc, char** argv) {
  using namespace trainwright;
  if (!AsksAboutCommandLine(std::vector<std::string>(argv, argv + argc))) {
    return BecomeEngine(TRAINWRIGHT_TOOL, TRAINWRIGHT_TORCH_FOLDER, argv);
  }
  for (const ToolDefinition& tool : AllTools()) {
    if (tool.info->name != TRAINWRIGHT_TOOL) continue;
    return RunTool(argc, argv, *tool.info, tool.define,
                   [&](ToolRun&) { return BecomeEngine(TRAINWRIGHT_TOOL, TRAINWRIGHT_TORCH_FOLDER, argv); });
  }
  return BecomeEngine(TRAINWRIGHT_TOOL, TRAINWRIGHT_TORCH_FOLDER, argv);
}
