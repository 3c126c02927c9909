#include "lib/machine/gpu_state.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>

#include "lib/base/units.h"
#include "lib/machine/cuda_driver.h"

namespace trainwright {
namespace {

/// cmake/Cuda.cmake builds kernels for 7.5, 8.0 and 9.0; the second runs on all of 8.x, and the third's PTX
/// on what came later. CUDA 13 has dropped what came before.
constexpr Capability kOldestBuilt{7, 5};

std::string NameOf(const GpuInfo& gpu) {
  return "GPU " + std::to_string(gpu.index) + " (" + gpu.name.value_or("name unknown") + ")";
}

std::string Trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

std::optional<size_t> GpuNamed(const std::string& entry, const std::vector<GpuInfo>& gpus) {
  size_t index = 0;
  const auto [end, status] = std::from_chars(entry.data(), entry.data() + entry.size(), index);
  if (status == std::errc() && end == entry.data() + entry.size()) {
    return index < gpus.size() ? std::optional(index) : std::nullopt;
  }
  if (!entry.starts_with("GPU-") && !entry.starts_with("MIG-")) return std::nullopt;
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (gpus[i].uuid && gpus[i].uuid->starts_with(entry)) return i;
  }
  // Parts of a GPU have names of their own, which the list of whole GPUs does not hold.
  if (entry.starts_with("MIG-") && gpus.size() == 1) return 0;
  return std::nullopt;
}

/// Why nobody can start on the GPU now; empty: one can.
std::string BusyReason(const GpuInfo& gpu) {
  const std::string mode = gpu.compute_mode.value_or("default");
  if (mode == "prohibited") return "its compute mode is prohibited";
  if (mode.starts_with("exclusive") && gpu.processes && !gpu.processes->empty()) {
    const GpuProcess& process = gpu.processes->front();
    return "its compute mode is exclusive and process " + std::to_string(process.pid) +
           (process.name ? " (" + *process.name + ")" : "") + " has it";
  }
  if (gpu.memory_free_bytes && *gpu.memory_free_bytes < kLeastFreeBytes) {
    return "only " + FormatBytes(static_cast<uint64_t>(*gpu.memory_free_bytes)) + " of its memory are free";
  }
  return "";
}

}  // namespace

std::string GpuStateName(GpuState state) {
  switch (state) {
    case GpuState::kUsable:
      return "usable";
    case GpuState::kNoDriver:
      return "no_driver";
    case GpuState::kDriverTooOld:
      return "driver_too_old";
    case GpuState::kNoGpu:
      return "no_gpu";
    case GpuState::kHidden:
      return "hidden";
    case GpuState::kArchitectureNotBuilt:
      return "architecture_not_built";
    case GpuState::kBusy:
      return "busy";
    case GpuState::kNoBackend:
      return "no_backend";
  }
  return "";
}

std::vector<size_t> VisibleGpus(const std::optional<std::string>& visible_devices,
                                const std::vector<GpuInfo>& gpus) {
  std::vector<size_t> visible;
  if (!visible_devices) {
    for (size_t i = 0; i < gpus.size(); ++i) visible.push_back(i);
    return visible;
  }
  std::istringstream entries(*visible_devices);
  for (std::string entry; std::getline(entries, entry, ',');) {
    const std::optional<size_t> gpu = GpuNamed(Trimmed(entry), gpus);
    if (!gpu) break;
    visible.push_back(*gpu);
  }
  return visible;
}

GpuVerdict JudgeGpus(const GpuEvidence& evidence) {
  const auto verdict = [&](GpuState state, std::string problem, std::string hint,
                           std::optional<size_t> gpu = std::nullopt) {
    return GpuVerdict{state, std::move(problem), std::move(hint), gpu};
  };
  if (!evidence.driver_loads) {
    return verdict(GpuState::kNoDriver, "no NVIDIA driver: " + evidence.driver_problem,
                   evidence.gpus.empty()
                       ? "a machine with a GPU needs its driver; without a GPU nothing is missing"
                       : "libcuda.so.1 belongs to the driver: in a container, start it with the GPUs given");
  }
  if (evidence.driver_cuda_version && evidence.needed_cuda_version &&
      *evidence.driver_cuda_version / 1000 < *evidence.needed_cuda_version / 1000) {
    return verdict(
        GpuState::kDriverTooOld,
        "driver " + evidence.driver_version.value_or("of unknown version") + " runs CUDA " +
            CudaVersionText(*evidence.driver_cuda_version) + " at most; torch needs " +
            CudaVersionText(*evidence.needed_cuda_version),
        "install a driver for CUDA " + CudaVersionText(*evidence.needed_cuda_version) + " or later");
  }
  if (evidence.gpus.empty()) {
    // Without the management library, hidden GPUs are not seen.
    const bool may_hide = evidence.visible_devices.has_value();
    return verdict(may_hide ? GpuState::kHidden : GpuState::kNoGpu,
                   std::string("the driver shows no GPU") +
                       (evidence.driver_problem.empty() ? "" : ": " + evidence.driver_problem) +
                       (may_hide ? " (CUDA_VISIBLE_DEVICES='" + *evidence.visible_devices + "')" : ""),
                   may_hide ? "unset CUDA_VISIBLE_DEVICES, or name a GPU that nvidia-smi lists"
                            : "see nvidia-smi: the GPU may be off the bus, or not given to this container");
  }
  const std::vector<size_t> visible = VisibleGpus(evidence.visible_devices, evidence.gpus);
  if (visible.empty()) {
    return verdict(GpuState::kHidden,
                   "CUDA_VISIBLE_DEVICES='" + *evidence.visible_devices + "' hides all " +
                       std::to_string(evidence.gpus.size()) + " of the machine",
                   "unset CUDA_VISIBLE_DEVICES, or name a GPU that nvidia-smi lists");
  }
  const GpuInfo& gpu = evidence.gpus[visible.front()];
  if (gpu.capability && *gpu.capability < kOldestBuilt) {
    return verdict(GpuState::kArchitectureNotBuilt,
                   NameOf(gpu) + " has compute capability " + gpu.capability->text() +
                       ": CUDA 13 cannot serve GPUs before 7.5",
                   "train on the CPU (--device cpu), or on a GPU of compute capability 7.5 or later",
                   visible.front());
  }
  if (const std::string reason = BusyReason(gpu); !reason.empty()) {
    return verdict(GpuState::kBusy, NameOf(gpu) + ": " + reason,
                   "wait for it, end the process, or name another GPU in CUDA_VISIBLE_DEVICES",
                   visible.front());
  }
  if (!evidence.backend_problem.empty()) {
    return verdict(GpuState::kNoBackend, evidence.backend_problem, evidence.backend_hint, visible.front());
  }
  return verdict(GpuState::kUsable, "", "", visible.front());
}

GpuEvidence ReadGpuEvidence(GpuManagement* management) {
  GpuEvidence evidence;
  const CudaDriver driver = ReadCudaDriver();
  evidence.driver_loads = driver.loads;
  evidence.driver_problem = driver.problem;
  evidence.driver_cuda_version = driver.cuda_version;
  evidence.needed_cuda_version = LoadedCudaRuntime();
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) evidence.visible_devices = visible;
  if (management == nullptr) {
    evidence.gpus = driver.gpus;
    if (!driver.gpus.empty()) evidence.visible_devices.reset();  // the driver lists what is visible alone
    return evidence;
  }
  const DriverInfo info = management->Driver();
  evidence.driver_version = info.version;
  if (!evidence.driver_cuda_version) evidence.driver_cuda_version = info.cuda_version;
  evidence.gpus = management->Gpus();
  for (GpuInfo& gpu : evidence.gpus) {
    for (const GpuInfo& known : driver.gpus) {
      if (!gpu.uuid || gpu.uuid != known.uuid) continue;
      gpu.sm_count = known.sm_count;
      if (!gpu.capability) gpu.capability = known.capability;
    }
  }
  return evidence;
}

}  // namespace trainwright
