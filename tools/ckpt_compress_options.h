/// The command line of `ckpt-compress`.
#pragma once

#include <CLI/App.hpp>

#include "lib/cli/tool.h"
#include "lib/codec/ckpt_compress_job.h"

namespace trainwright {

const ToolInfo& CkptCompressInfo();
void DefineCkptCompressOptions(CLI::App& app, CkptCompressOptions* options);

}  // namespace trainwright
