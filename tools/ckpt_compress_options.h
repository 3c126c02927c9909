/// The command line of `ckpt-compress`.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "lib/cli/tool.h"

namespace trainwright {

enum class OutputForm { kAuto, kSafetensors, kStream, kRaw };

struct CkptCompressOptions {
  std::vector<std::string> inputs;  ///< empty: standard input
  std::string output;               ///< empty: beside the input, or standard output
  bool force = false;
  bool decompress = false, test = false, list = false;
  bool fast = false, max = false;
  OutputForm to = OutputForm::kAuto;
  std::string base;
  bool no_verify = false;
  bool keep_going = false;
  std::vector<std::string> tensors, slices;
  bool json = false;
  int threads = 0;  ///< 0: one a CPU
};

const ToolInfo& CkptCompressInfo();
void DefineCkptCompressOptions(CLI::App& app, CkptCompressOptions* options);

}  // namespace trainwright
