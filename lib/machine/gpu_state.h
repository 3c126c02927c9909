/// Whether a GPU can be trained on here, and if not, which of the usual reasons it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/machine/gpu_info.h"

namespace trainwright {

enum class GpuState {
  kUsable,
  kNoDriver,              ///< no driver library: the usual answer of a machine without a GPU
  kDriverTooOld,          ///< for the CUDA runtime that torch brings
  kNoGpu,                 ///< a driver, and nothing that it drives
  kHidden,                ///< CUDA_VISIBLE_DEVICES leaves none
  kArchitectureNotBuilt,  ///< its compute capability is none that the kernels are built for
  kBusy,                  ///< another process holds it, or its memory
  kNoBackend              ///< the GPU is fine; the plugin or torch's CUDA libraries are missing
};

/// "usable", "no_driver", "driver_too_old", "no_gpu", "hidden", "architecture_not_built", "busy",
/// "no_backend"
std::string GpuStateName(GpuState state);

/// The least free memory that is worth a start: a context, the libraries' workspaces and a small model.
inline constexpr int64_t kLeastFreeBytes = int64_t{1} << 30;

/// What the machine reports, gathered by ReadGpuEvidence or made up by a test. The processes on a GPU are
/// others than this one, which has no context yet: the driver's process ids are those of the host, so that
/// in a container this process could not be recognised by its own.
struct GpuEvidence {
  bool driver_loads = false;
  std::string driver_problem;  ///< the loader's or the driver's words
  std::optional<std::string> driver_version;
  std::optional<int> driver_cuda_version;      ///< newest CUDA that the driver runs: 13000 is 13.0
  std::optional<int> needed_cuda_version;      ///< of the runtime that torch brings
  std::optional<std::string> visible_devices;  ///< CUDA_VISIBLE_DEVICES; absent: not set
  std::vector<GpuInfo> gpus;                   ///< of the machine, hidden ones too, by PCI bus
  std::string backend_problem, backend_hint;   ///< why the CUDA backend cannot be loaded; empty: it can
};

struct GpuVerdict {
  GpuState state = GpuState::kNoDriver;
  std::string problem, hint;  ///< empty when usable
  std::optional<size_t> gpu;  ///< in the evidence's list: the one that CUDA counts first, if any is visible
};

GpuVerdict JudgeGpus(const GpuEvidence& evidence);

/// The GPUs that CUDA_VISIBLE_DEVICES leaves, as places in `gpus`, in its order. Like CUDA, stops at the
/// first entry that names none.
std::vector<size_t> VisibleGpus(const std::optional<std::string>& visible_devices,
                                const std::vector<GpuInfo>& gpus);

/// Of the machine that this runs on, but for the backend, whose libraries take time to load.
/// \param management may be null
GpuEvidence ReadGpuEvidence(GpuManagement* management);

}  // namespace trainwright
