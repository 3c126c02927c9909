#include "lib/machine/host_info.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <string_view>

#include "lib/base/host.h"
#include "lib/machine/json_optional.h"

namespace trainwright {
namespace {

/// Those that matter to the products and kernels of training, under the kernel's names.
constexpr const char* kIsaNames[] = {"sse4_2",      "avx",         "f16c",        "fma",      "avx2",
                                     "avx_vnni",    "avx512f",     "avx512bw",    "avx512dq", "avx512vl",
                                     "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8",
                                     "amx_bf16",    "amx_fp16"};

/// What control groups without a limit write: the largest page-aligned number.
constexpr int64_t kNoLimitBytes = int64_t{1} << 60;

template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number number{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end == text.data()) return std::nullopt;
  return number;
}

std::optional<std::string> FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<int64_t> ReadNumber(const std::string& path) {
  const std::optional<std::string> line = FirstLine(path);
  return line ? ParseNumber<int64_t>(*line) : std::nullopt;
}

template <typename Number>
void KeepLess(std::optional<Number>* least, std::optional<Number> value) {
  if (value && (!*least || *value < **least)) *least = value;
}

/// The fields of the first processor.
void ReadCpuInfo(const std::string& root, HostInfo* host) {
  std::ifstream file(root + "/proc/cpuinfo");
  int processors = 0;
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string value = colon + 2 <= line.size() ? line.substr(colon + 2) : "";
    if (line.starts_with("processor")) ++processors;
    if (line.starts_with("model name") && !host->cpu_model && !value.empty()) host->cpu_model = value;
    if (line.starts_with("flags") && host->isa.empty()) {
      std::istringstream words(value);
      const std::set<std::string> flags{std::istream_iterator<std::string>(words), {}};
      for (const char* name : kIsaNames) {
        if (flags.contains(name)) host->isa.push_back(name);
      }
    }
  }
  if (processors > 0) host->logical_processors = processors;
}

/// Cores behind processors: hyper-threads of one core list the same siblings.
std::optional<int> CoresOf(const std::string& root, const std::vector<int>& processors) {
  std::set<std::string> cores;
  for (const int processor : processors) {
    cores.insert(FirstLine(root + "/sys/devices/system/cpu/cpu" + std::to_string(processor) +
                           "/topology/thread_siblings_list")
                     .value_or(std::to_string(processor)));
  }
  if (cores.empty()) return std::nullopt;
  return static_cast<int>(cores.size());
}

std::optional<std::string> FieldOf(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name + ":")) continue;
    const size_t begin = line.find_first_not_of(" \t", name.size() + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return std::nullopt;
}

std::optional<int64_t> KilobytesOf(const std::string& path, const std::string& name) {
  const std::optional<std::string> text = FieldOf(path, name);
  const std::optional<int64_t> kilobytes = text ? ParseNumber<int64_t>(*text) : std::nullopt;
  return kilobytes ? std::optional(*kilobytes * 1024) : std::nullopt;
}

/// "32768K" or "32M".
std::optional<int64_t> ParseCacheSize(const std::string& text) {
  const std::optional<int64_t> number = ParseNumber<int64_t>(text);
  if (!number) return std::nullopt;
  return *number * (text.ends_with('K') ? 1 << 10 : text.ends_with('M') ? 1 << 20 : 1);
}

std::optional<int64_t> LastLevelCache(const std::string& root) {
  std::optional<int64_t> size;
  for (int index = 0; index < 8; ++index) {
    const std::optional<std::string> text =
        FirstLine(root + "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
    const std::optional<int64_t> bytes = text ? ParseCacheSize(*text) : std::nullopt;
    if (bytes && (!size || *bytes > *size)) size = bytes;
  }
  return size;
}

std::optional<int> CountNumaNodes(const std::string& root) {
  std::error_code error;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/sys/devices/system/node", error)) {
    const std::string name = entry.path().filename().string();
    count += name.size() > 4 && name.starts_with("node") &&
             std::all_of(name.begin() + 4, name.end(), [](char c) { return c >= '0' && c <= '9'; });
  }
  return error || count == 0 ? std::nullopt : std::optional(count);
}

/// The folders of a group and of those that hold it, the outermost last. Where the group's path is that of
/// another name space, the mount point stands for it.
std::vector<std::string> GroupFolders(const std::string& mount, std::string group) {
  std::error_code ignored;
  std::vector<std::string> folders;
  for (; group.size() > 1; group = group.substr(0, group.rfind('/'))) {
    if (std::filesystem::exists(mount + group, ignored)) folders.push_back(mount + group);
  }
  folders.push_back(mount);
  return folders;
}

void ReadGroupVersion2(const std::string& root, const std::string& group, CgroupLimits* limits) {
  for (const std::string& folder : GroupFolders(root + "/sys/fs/cgroup", group)) {
    if (const auto line = FirstLine(folder + "/cpu.max")) {
      std::istringstream words(*line);
      double quota = 0, period = 0;
      if (words >> quota >> period && period > 0) KeepLess(&limits->cpus, std::optional(quota / period));
    }
    KeepLess(&limits->memory_bytes, ReadNumber(folder + "/memory.max"));
  }
}

void ReadGroupVersion1(const std::string& root, const std::string& controller, const std::string& group,
                       CgroupLimits* limits) {
  for (const std::string& folder : GroupFolders(root + "/sys/fs/cgroup/" + controller, group)) {
    if (controller == "memory") {
      const std::optional<int64_t> bytes = ReadNumber(folder + "/memory.limit_in_bytes");
      if (bytes && *bytes < kNoLimitBytes) KeepLess(&limits->memory_bytes, bytes);
      continue;
    }
    const std::optional<int64_t> quota = ReadNumber(folder + "/cpu.cfs_quota_us"),
                                 period = ReadNumber(folder + "/cpu.cfs_period_us");
    if (quota && period && *quota > 0 && *period > 0) {
      KeepLess(&limits->cpus, std::optional(static_cast<double>(*quota) / static_cast<double>(*period)));
    }
  }
}

CgroupLimits ReadCgroup(const std::string& root) {
  CgroupLimits limits;
  std::ifstream file(root + "/proc/self/cgroup");
  // hierarchy:controllers:group
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1),
                      group = line.substr(second + 1);
    if (controllers.empty()) {
      if (limits.version == 0) limits.version = 2;
      ReadGroupVersion2(root, group, &limits);
      continue;
    }
    std::istringstream names(controllers);
    for (std::string name; std::getline(names, name, ',');) {
      if (name != "cpu" && name != "memory") continue;
      limits.version = 1;
      ReadGroupVersion1(root, name, group, &limits);
    }
  }
  return limits;
}

/// The type of the mounted file system that has the device's number.
std::optional<std::string> FileSystemOf(dev_t device) {
  const std::string number = std::to_string(major(device)) + ":" + std::to_string(minor(device));
  std::ifstream file("/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string id, parent, found, word;
    words >> id >> parent >> found;
    if (found != number) continue;
    while (words >> word && word != "-") {
    }
    if (words >> word) return word;
  }
  return std::nullopt;
}

}  // namespace

bool HostInfo::has(const std::string& instruction_set) const {
  return std::find(isa.begin(), isa.end(), instruction_set) != isa.end();
}

int HostInfo::compute_cores() const {
  const int cores = usable_physical_cores.value_or(1);
  if (!cgroup.cpus) return cores;
  return std::clamp(static_cast<int>(std::floor(*cgroup.cpus)), 1, cores);
}

std::optional<int64_t> HostInfo::memory_for_process() const {
  std::optional<int64_t> bytes = memory_available_bytes;
  KeepLess(&bytes, cgroup.memory_bytes);
  return bytes;
}

std::vector<int> ParseProcessorList(const std::string& text) {
  std::vector<int> processors;
  std::istringstream ranges(text);
  for (std::string range; std::getline(ranges, range, ',');) {
    const std::optional<int> first = ParseNumber<int>(range);
    const size_t dash = range.find('-');
    const std::optional<int> last =
        dash == std::string::npos ? first : ParseNumber<int>(std::string_view(range).substr(dash + 1));
    if (!first || !last) continue;
    for (int processor = *first; processor <= *last; ++processor) processors.push_back(processor);
  }
  return processors;
}

HostInfo ReadHostInfo(const std::string& root) {
  HostInfo host;
  ReadCpuInfo(root, &host);
  if (const auto online = FirstLine(root + "/sys/devices/system/cpu/online")) {
    const std::vector<int> processors = ParseProcessorList(*online);
    if (!processors.empty()) host.logical_processors = static_cast<int>(processors.size());
    host.physical_cores = CoresOf(root, processors);
  }
  host.usable_processors =
      ParseProcessorList(FieldOf(root + "/proc/self/status", "Cpus_allowed_list").value_or(""));
  host.usable_physical_cores = CoresOf(root, host.usable_processors);
  host.numa_nodes = CountNumaNodes(root);
  host.last_level_cache_bytes = LastLevelCache(root);
  host.memory_total_bytes = KilobytesOf(root + "/proc/meminfo", "MemTotal");
  host.memory_available_bytes = KilobytesOf(root + "/proc/meminfo", "MemAvailable");
  host.cgroup = ReadCgroup(root);
  if (root.empty()) {
    const HostFacts facts = ReadHostFacts();
    if (!facts.kernel.empty()) host.kernel = facts.kernel;
    host.load_1min = facts.load_1min;
  }
  return host;
}

DiskInfo ReadDiskInfo(const std::string& folder) {
  DiskInfo disk{.folder = folder, .file_system = {}, .total_bytes = {}, .free_bytes = {}};
  struct stat status {};
  if (stat(folder.c_str(), &status) == 0) disk.file_system = FileSystemOf(status.st_dev);
  struct statvfs space {};
  if (statvfs(folder.c_str(), &space) == 0) {
    const auto unit = static_cast<int64_t>(space.f_frsize);
    disk.total_bytes = static_cast<int64_t>(space.f_blocks) * unit;
    disk.free_bytes = static_cast<int64_t>(space.f_bavail) * unit;
  }
  return disk;
}

nlohmann::ordered_json EncodeHostInfo(const HostInfo& host) {
  return {{"cpu_model", OrNull(host.cpu_model)},
          {"isa", host.isa},
          {"logical_processors", OrNull(host.logical_processors)},
          {"physical_cores", OrNull(host.physical_cores)},
          {"usable_processors", host.usable_processors},
          {"usable_physical_cores", OrNull(host.usable_physical_cores)},
          {"numa_nodes", OrNull(host.numa_nodes)},
          {"last_level_cache_bytes", OrNull(host.last_level_cache_bytes)},
          {"memory_total_bytes", OrNull(host.memory_total_bytes)},
          {"memory_available_bytes", OrNull(host.memory_available_bytes)},
          {"cgroup",
           {{"version", host.cgroup.version == 0 ? nlohmann::ordered_json()
                                                 : nlohmann::ordered_json(host.cgroup.version)},
            {"cpus", OrNull(host.cgroup.cpus)},
            {"memory_bytes", OrNull(host.cgroup.memory_bytes)}}},
          {"kernel", OrNull(host.kernel)},
          {"load_1min", OrNull(host.load_1min)}};
}

nlohmann::ordered_json EncodeDiskInfo(const DiskInfo& disk) {
  return {{"folder", disk.folder},
          {"file_system", OrNull(disk.file_system)},
          {"total_bytes", OrNull(disk.total_bytes)},
          {"free_bytes", OrNull(disk.free_bytes)}};
}

}  // namespace trainwright
