/// The definition of the sample tool: an option of every kind, for the tests of lib/cli.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/cli/tool.h"

namespace trainwright::test {

struct SampleOptions {
  std::vector<std::string> inputs;
  std::string output = "-", title = "untitled", fail;
  int64_t steps = 10;
  double rate = 0.25;
  std::vector<double> scales = {1, 0.5};
  std::vector<std::string> tags;
  bool force = false;
  std::string mode = "fast";
  uint64_t megabytes = 0;
};

/// \param filter whether SIGPIPE ends the tool
ToolInfo SampleInfo(bool filter);
void DefineSampleOptions(CLI::App& app, SampleOptions* options);

}  // namespace trainwright::test
