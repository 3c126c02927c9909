/// What the host offers to a process: processor, memory, the limits of its control group, a folder's disk.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace trainwright {

/// What the control groups of this process allow, the strictest of the hierarchy.
struct CgroupLimits {
  int version = 0;             ///< 1 or 2; 0: in none
  std::optional<double> cpus;  ///< processors' worth of time; absent: unlimited
  std::optional<int64_t> memory_bytes;
};

/// Absent where the system does not say.
struct HostInfo {
  std::optional<std::string> cpu_model;
  std::vector<std::string> isa;  ///< of kIsaNames, as the kernel reports them: "avx2", "avx512_bf16"
  std::optional<int> logical_processors, physical_cores;
  std::vector<int> usable_processors;        ///< numbers of those that this process may run on
  std::optional<int> usable_physical_cores;  ///< after these
  std::optional<int> numa_nodes;
  std::optional<int64_t> last_level_cache_bytes;
  std::optional<int64_t> memory_total_bytes, memory_available_bytes;
  CgroupLimits cgroup;
  std::optional<std::string> kernel;
  std::optional<double> load_1min;

  bool has(const std::string& instruction_set) const;
  /// Cores that threads can use at once: the usable physical ones, as far as the control group gives time.
  int compute_cores() const;
  /// What is left for this process: the least of what is available and the control group's limit.
  std::optional<int64_t> memory_for_process() const;
};

/// \param root comes before /proc and /sys; empty: this machine
HostInfo ReadHostInfo(const std::string& root = "");

struct DiskInfo {
  std::string folder;
  std::optional<std::string> file_system;          ///< "ext4", "overlay", "nfs4"
  std::optional<int64_t> total_bytes, free_bytes;  ///< free to this user
};
DiskInfo ReadDiskInfo(const std::string& folder);

/// "0-3,8" -> 0 1 2 3 8; what cannot be read is left out.
std::vector<int> ParseProcessorList(const std::string& text);

nlohmann::ordered_json EncodeHostInfo(const HostInfo& host);
nlohmann::ordered_json EncodeDiskInfo(const DiskInfo& disk);

}  // namespace trainwright
