/// Whether training repeats the passes of micro-batches as graphs of a GPU (lib/model/pass_graphs.h). Free of
/// torch.
#pragma once

#include <string>

namespace trainwright {

enum class CompileMode {
  kOff,    ///< each kernel is queued by itself
  kGraph,  ///< graphs, and the run ends where they cannot be recorded
  kAuto,   ///< graphs where queueing kernels would take as long as the GPU computes
};

/// "off", "graph" or "auto".
/// \throws Error{kUsage} naming `flag`
CompileMode ParseCompileMode(const std::string& text, const std::string& flag);

}  // namespace trainwright
