/// Which GPU of its machine a rank computes on: each has one of its own where there are enough.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trainwright {

/// What CUDA_VISIBLE_DEVICES is to be in a rank, so that its one GPU is "cuda" to all that it runs.
/// \param visible CUDA_VISIBLE_DEVICES as the rank finds it; nullopt: all GPUs are
/// \param machine_gpus of the machine
/// \returns nullopt where the rank finds none or one, which its launcher chose
std::optional<std::string> VisibleGpuOfRank(const std::optional<std::string>& visible, int64_t machine_gpus,
                                            int64_t local_rank);

/// Those that the driver of this machine lists.
int64_t CountMachineGpus();

}  // namespace trainwright
