#include "lib/launch/rank_gpu.h"

#include <filesystem>
#include <iterator>
#include <sstream>
#include <vector>

namespace trainwright {

namespace fs = std::filesystem;

std::optional<std::string> VisibleGpuOfRank(const std::optional<std::string>& visible, int64_t machine_gpus,
                                            int64_t local_rank) {
  std::vector<std::string> gpus;
  if (visible) {
    std::istringstream list(*visible);
    for (std::string gpu; std::getline(list, gpu, ',');) gpus.push_back(gpu);
  } else {
    for (int64_t gpu = 0; gpu < machine_gpus; ++gpu) gpus.push_back(std::to_string(gpu));
  }
  if (gpus.size() <= 1) return std::nullopt;
  return gpus[static_cast<size_t>(local_rank) % gpus.size()];
}

int64_t CountMachineGpus() {
  std::error_code unknown;
  const fs::directory_iterator gpus("/proc/driver/nvidia/gpus", unknown);
  return unknown ? 0 : std::distance(fs::begin(gpus), fs::end(gpus));
}

}  // namespace trainwright
