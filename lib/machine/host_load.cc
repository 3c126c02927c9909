#include "lib/machine/host_load.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace trainwright {
namespace {

constexpr int64_t kSectorBytes = 512;  // of /proc/diskstats, whatever the disk's own are

/// The number after "<name>:" in a file of such lines.
std::optional<int64_t> NumberOf(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name + ":")) continue;
    std::istringstream words(line.substr(name.size() + 1));
    int64_t number = 0;
    if (words >> number) return number;
  }
  return std::nullopt;
}

std::optional<double> RateOf(std::optional<int64_t> before, std::optional<int64_t> now, double time_s) {
  if (!before || !now || !(time_s > 0) || *now < *before) return std::nullopt;
  return static_cast<double>(*now - *before) / time_s;
}

}  // namespace

HostLoadSampler::HostLoadSampler(std::vector<int64_t> pids, std::string root)
    : pids_(std::move(pids)), root_(std::move(root)) {}

void HostLoadSampler::ReadProcessors(Counters* counters) const {
  std::ifstream file(root_ + "/proc/stat");
  std::string name;
  // user nice system idle iowait irq softirq steal; what guests use is in user already.
  int64_t ticks[8] = {};
  if (!(file >> name) || name != "cpu") return;
  for (int64_t& each : ticks) {
    if (!(file >> each)) return;
  }
  int64_t total = 0;
  for (const int64_t each : ticks) total += each;
  counters->total = total;
  counters->busy = total - ticks[3] - ticks[4];
}

void HostLoadSampler::ReadDisks(Counters* counters) const {
  std::ifstream file(root_ + "/proc/diskstats");
  std::error_code ignored;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    int64_t major = 0, minor = 0, reads = 0, merged = 0, read_sectors = 0, read_ms = 0, writes = 0,
            merged_writes = 0, written_sectors = 0;
    std::string name;
    if (!(words >> major >> minor >> name >> reads >> merged >> read_sectors >> read_ms >> writes >>
          merged_writes >> written_sectors)) {
      continue;
    }
    // /sys/block has whole disks; of those, loops and memory disks are files and memory.
    if (name.starts_with("loop") || name.starts_with("ram") || name.starts_with("dm-") ||
        !std::filesystem::exists(root_ + "/sys/block/" + name, ignored)) {
      continue;
    }
    counters->disk_read_bytes = counters->disk_read_bytes.value_or(0) + read_sectors * kSectorBytes;
    counters->disk_write_bytes = counters->disk_write_bytes.value_or(0) + written_sectors * kSectorBytes;
  }
}

HostLoadSampler::Counters::Process HostLoadSampler::ReadProcess(int64_t pid, ProcessLoad* load) const {
  Counters::Process process;
  const std::string folder = root_ + "/proc/" + std::to_string(pid);
  std::ifstream file(folder + "/stat");
  std::string line;
  if (!std::getline(file, line)) return process;
  load->alive = true;
  // The name stands in parentheses and may hold anything; state is the first field behind it.
  const size_t name_end = line.rfind(')');
  if (name_end != std::string::npos) {
    std::istringstream words(line.substr(name_end + 1));
    std::string skipped;
    for (int field = 0; field < 11; ++field) words >> skipped;
    int64_t user = 0, system = 0;
    if (words >> user >> system) process.ticks = user + system;
  }
  if (const auto kilobytes = NumberOf(folder + "/status", "VmRSS")) load->resident_bytes = *kilobytes * 1024;
  process.read_bytes = NumberOf(folder + "/io", "read_bytes");
  process.write_bytes = NumberOf(folder + "/io", "write_bytes");
  return process;
}

HostLoad HostLoadSampler::Sample(double time_s) {
  HostLoad load;
  Counters now{.time_s = time_s};
  ReadProcessors(&now);
  ReadDisks(&now);
  if (double one = 0; std::ifstream(root_ + "/proc/loadavg") >> one) load.load_1min = one;
  const auto total = NumberOf(root_ + "/proc/meminfo", "MemTotal"),
             available = NumberOf(root_ + "/proc/meminfo", "MemAvailable");
  if (available) load.memory_available_bytes = *available * 1024;
  if (total && available) load.memory_used_bytes = (*total - *available) * 1024;

  const double passed_s = before_ ? time_s - before_->time_s : 0;
  const double ticks_a_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  if (before_ && before_->busy && now.busy && *now.total > *before_->total) {
    load.utilization =
        static_cast<double>(*now.busy - *before_->busy) / static_cast<double>(*now.total - *before_->total);
  }
  if (before_) {
    load.disk_read_bytes_per_s = RateOf(before_->disk_read_bytes, now.disk_read_bytes, passed_s);
    load.disk_write_bytes_per_s = RateOf(before_->disk_write_bytes, now.disk_write_bytes, passed_s);
  }
  for (const int64_t pid : pids_) {
    ProcessLoad process{.pid = pid};
    const Counters::Process counts = now.processes[pid] = ReadProcess(pid, &process);
    if (before_) {
      const Counters::Process& old = before_->processes[pid];
      if (const auto ticks = RateOf(old.ticks, counts.ticks, passed_s))
        process.cpus = *ticks / ticks_a_second;
      process.read_bytes_per_s = RateOf(old.read_bytes, counts.read_bytes, passed_s);
      process.write_bytes_per_s = RateOf(old.write_bytes, counts.write_bytes, passed_s);
    }
    load.processes.push_back(process);
  }
  before_ = std::move(now);
  return load;
}

}  // namespace trainwright
