/// `gpu-probe --watch`: what GPUs and host do, sample after sample.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/io/byte_sink.h"
#include "lib/machine/gpu_info.h"
#include "lib/machine/host_load.h"

namespace trainwright {

struct WatchOptions {
  double interval_s = 1;
  int64_t samples = 0;  ///< 0: until a signal
  bool json = false;    ///< JSON Lines; else tables, on a terminal one over the other
  bool in_place = false;
  std::vector<int64_t> pids;
};

/// Samples at the beginning and then on the beat: a late one does not shift those after it. Ends early when
/// every watched process has.
/// \param management null: no GPU is shown
/// \returns the exit status: 0, or 128 and the signal that ended it, with the last line whole
int RunWatch(const WatchOptions& options, GpuManagement* management, ByteSink* out);

/// {"schema":"trainwright.gpu-probe.watch/1", ...}
nlohmann::ordered_json EncodeWatchSample(const std::string& time, const HostLoad& host,
                                         const std::vector<GpuInfo>& gpus);
std::string FormatWatchSample(const std::string& time, const HostLoad& host,
                              const std::vector<GpuInfo>& gpus);

}  // namespace trainwright
