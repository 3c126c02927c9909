#include "lib/machine/watch_job.h"

#include <time.h>

#include <algorithm>
#include <cmath>

#include "lib/base/bytes.h"
#include "lib/base/signals.h"
#include "lib/base/units.h"
#include "lib/base/utc_time.h"
#include "lib/formats/json_text.h"
#include "lib/machine/json_optional.h"
#include "lib/report/table.h"

namespace trainwright {
namespace {

using nlohmann::ordered_json;

constexpr char kClearTerminal[] = "\x1b[H\x1b[2J";

double MonotonicSeconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Sleeps until then, or until a signal asks to stop.
void SleepUntil(double time_s) {
  const double whole = std::floor(time_s);
  const timespec until{.tv_sec = static_cast<time_t>(whole),
                       .tv_nsec = static_cast<long>((time_s - whole) * 1e9)};
  while (StopSignal() == 0 && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

std::string Bytes(const std::optional<int64_t>& bytes) {
  return bytes ? FormatBytes(static_cast<uint64_t>(*bytes)) : "-";
}
std::string BytesPerSecond(const std::optional<double>& rate) {
  return rate ? FormatBytes(static_cast<uint64_t>(*rate)) + "/s" : "-";
}
std::string Number(const std::optional<double>& value, int digits, const std::string& unit = "") {
  return value ? FormatFixed(*value, digits) + unit : "-";
}
std::string Number(const std::optional<int>& value, const std::string& unit) {
  return value ? std::to_string(*value) + unit : "-";
}

}  // namespace

ordered_json EncodeWatchSample(const std::string& time, const HostLoad& host,
                               const std::vector<GpuInfo>& gpus) {
  ordered_json processes = ordered_json::array(), devices = ordered_json::array();
  for (const ProcessLoad& process : host.processes) {
    processes.push_back({{"pid", process.pid},
                         {"alive", process.alive},
                         {"resident_bytes", OrNull(process.resident_bytes)},
                         {"cpus", OrNull(process.cpus)},
                         {"read_bytes_per_s", OrNull(process.read_bytes_per_s)},
                         {"write_bytes_per_s", OrNull(process.write_bytes_per_s)}});
  }
  for (const GpuInfo& gpu : gpus) devices.push_back(EncodeGpuInfo(gpu));
  return {{"schema", "trainwright.gpu-probe.watch/1"},
          {"time", time},
          {"host",
           {{"utilization", OrNull(host.utilization)},
            {"load_1min", OrNull(host.load_1min)},
            {"memory_used_bytes", OrNull(host.memory_used_bytes)},
            {"memory_available_bytes", OrNull(host.memory_available_bytes)},
            {"disk_read_bytes_per_s", OrNull(host.disk_read_bytes_per_s)},
            {"disk_write_bytes_per_s", OrNull(host.disk_write_bytes_per_s)},
            {"processes", processes}}},
          {"gpus", devices}};
}

std::string FormatWatchSample(const std::string& time, const HostLoad& host,
                              const std::vector<GpuInfo>& gpus) {
  Table table({"", "busy", "memory used", "free", "power", "temperature", "SM clock", "read", "write"});
  const std::optional<double> busy = host.utilization ? std::optional(*host.utilization * 100) : std::nullopt;
  table.AddRow({"host", Number(busy, 0, " %"), Bytes(host.memory_used_bytes),
                Bytes(host.memory_available_bytes), "-", "-", "-", BytesPerSecond(host.disk_read_bytes_per_s),
                BytesPerSecond(host.disk_write_bytes_per_s)});
  for (const ProcessLoad& process : host.processes) {
    table.AddRow({"process " + std::to_string(process.pid) + (process.alive ? "" : " (ended)"),
                  Number(process.cpus, 2, " CPUs"), Bytes(process.resident_bytes), "-", "-", "-", "-",
                  BytesPerSecond(process.read_bytes_per_s), BytesPerSecond(process.write_bytes_per_s)});
  }
  for (const GpuInfo& gpu : gpus) {
    table.AddRow({"GPU " + std::to_string(gpu.index) + " " + gpu.name.value_or(""),
                  Number(gpu.utilization_percent, " %"), Bytes(gpu.memory_used_bytes),
                  Bytes(gpu.memory_free_bytes), Number(gpu.power_draw_w, 0, " W"),
                  Number(gpu.temperature_c, " C"), Number(gpu.sm_clock_mhz, " MHz"), "-", "-"});
    for (const GpuProcess& process : gpu.processes.value_or(std::vector<GpuProcess>{})) {
      table.AddRow({"  process " + std::to_string(process.pid) + " " + process.name.value_or(""),
                    Number(process.utilization_percent, " %"), Bytes(process.memory_bytes), "-", "-", "-",
                    "-", "-", "-"});
    }
  }
  return time + "  load " + Number(host.load_1min, 2) + "\n" + table.ToString();
}

int RunWatch(const WatchOptions& options, GpuManagement* management, ByteSink* out) {
  HostLoadSampler sampler(options.pids);
  const double start = MonotonicSeconds();
  for (int64_t sample = 0; options.samples == 0 || sample < options.samples; ++sample) {
    if (sample > 0) SleepUntil(start + static_cast<double>(sample) * options.interval_s);
    if (StopSignal() != 0) return StopStatus(StopSignal());
    const HostLoad host = sampler.Sample(MonotonicSeconds());
    const std::vector<GpuInfo> gpus = management != nullptr ? management->Gpus() : std::vector<GpuInfo>{};
    const std::string time = Rfc3339Now();
    const std::string text = options.json ? JsonLineOf(EncodeWatchSample(time, host, gpus))
                                          : (options.in_place ? kClearTerminal
                                             : sample > 0     ? "\n"
                                                              : "") +
                                                FormatWatchSample(time, host, gpus);
    out->Write(AsBytes(text));
    const bool all_ended =
        !host.processes.empty() && std::none_of(host.processes.begin(), host.processes.end(),
                                                [](const ProcessLoad& process) { return process.alive; });
    if (all_ended) break;
  }
  return 0;
}

}  // namespace trainwright
