/// The command line of `gpu-probe`. Free of torch: man page and completions come from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/cli/tool.h"

namespace trainwright {

struct GpuProbeOptions {
  bool json = false, recommend = false, quick = false, require_gpu = false, watch = false, sustained = false;
  double seconds = 10;
  std::string device = "auto", kernels = "auto", model, folder = ".", disk_size = "64MiB";
  int64_t seq = 0, vocab = 258;
  int threads = 0;
  double interval_s = 1;
  int64_t samples = 0;
  std::vector<int64_t> pids;
};

const ToolInfo& GpuProbeInfo();
void DefineGpuProbeOptions(CLI::App& app, GpuProbeOptions* options);

}  // namespace trainwright
