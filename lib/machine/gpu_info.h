/// What the machine's GPUs are and do, as their management library reports it: NVML, loaded at run time.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace trainwright {

struct Capability {
  int major = 0, minor = 0;
  auto operator<=>(const Capability&) const = default;
  std::string text() const { return std::to_string(major) + "." + std::to_string(minor); }
};

/// A process with a context on a GPU.
struct GpuProcess {
  int64_t pid = 0;
  std::optional<std::string> name;
  std::optional<int64_t> memory_bytes;
  /// Of the GPU's compute units, and of its memory's time, lately. 0 where the library lists others only.
  std::optional<int> utilization_percent, memory_utilization_percent;
};

/// Absent where the driver does not say.
struct GpuInfo {
  int index = 0;  ///< in the management library's order, by PCI bus
  std::optional<std::string> name, uuid;
  std::optional<Capability> capability;
  std::optional<int> sm_count;
  std::optional<int64_t> memory_total_bytes, memory_free_bytes, memory_used_bytes;
  std::optional<bool> ecc, mig;
  std::optional<int> sm_clock_mhz, sm_clock_max_mhz, memory_clock_mhz, memory_clock_max_mhz;
  std::optional<double> power_limit_w, power_draw_w;
  std::optional<int> temperature_c;
  std::optional<int> utilization_percent, memory_utilization_percent;
  std::optional<std::vector<std::string>> throttle_reasons;
  std::optional<std::string> compute_mode;  ///< "default", "exclusive_process", "prohibited"
  std::optional<std::vector<GpuProcess>> processes;
};

struct DriverInfo {
  std::optional<std::string> version;  ///< "580.65.06"
  std::optional<int> cuda_version;     ///< newest CUDA that it runs: 13000 is 13.0
};

/// The management library, or a test's machine in its place. Not thread-safe.
class GpuManagement {
 public:
  virtual ~GpuManagement() = default;
  virtual DriverInfo Driver() = 0;
  /// All of the machine, those that CUDA_VISIBLE_DEVICES hides too. Called again and again by --watch.
  virtual std::vector<GpuInfo> Gpus() = 0;
};

/// \param library a name for the loader
/// \returns null with the reason in `problem` where it cannot be used
std::unique_ptr<GpuManagement> OpenNvml(std::string* problem,
                                        const std::string& library = "libnvidia-ml.so.1");

nlohmann::ordered_json EncodeGpuInfo(const GpuInfo& gpu);

}  // namespace trainwright
