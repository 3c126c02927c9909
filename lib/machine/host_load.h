/// What the host is doing: processors, memory, disks, and the processes that are watched.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace trainwright {

struct ProcessLoad {
  int64_t pid = 0;
  bool alive = false;
  std::optional<int64_t> resident_bytes;
  std::optional<double> cpus;  ///< processors that it keeps busy, since the sample before
  std::optional<double> read_bytes_per_s, write_bytes_per_s;  ///< of storage, likewise
};

/// Absent where the system does not say, and rates in the first sample.
struct HostLoad {
  std::optional<double> utilization;  ///< busy share of all processors since the sample before, [0, 1]
  std::optional<double> load_1min;
  std::optional<int64_t> memory_used_bytes, memory_available_bytes;
  std::optional<double> disk_read_bytes_per_s, disk_write_bytes_per_s;  ///< whole disks
  std::vector<ProcessLoad> processes;
};

/// Takes samples and says what happened between them. Not thread-safe.
class HostLoadSampler {
 public:
  /// \param root comes before /proc and /sys; empty: this machine
  explicit HostLoadSampler(std::vector<int64_t> pids, std::string root = "");
  /// \param time_s of a clock that only rises
  HostLoad Sample(double time_s);

 private:
  struct Counters {
    std::optional<int64_t> busy, total;  ///< clock ticks of all processors
    std::optional<int64_t> disk_read_bytes, disk_write_bytes;
    struct Process {
      std::optional<int64_t> ticks, read_bytes, write_bytes;
    };
    std::map<int64_t, Process> processes;
    double time_s = 0;
  };
  void ReadProcessors(Counters* counters) const;
  void ReadDisks(Counters* counters) const;
  Counters::Process ReadProcess(int64_t pid, ProcessLoad* load) const;

  std::vector<int64_t> pids_;
  std::string root_;
  std::optional<Counters> before_;
};

}  // namespace trainwright
