#include <string>

#include "lib/base/units.h"
#include "lib/base/version.h"
#include "lib/machine/cuda_driver.h"
#include "lib/machine/json_optional.h"
#include "lib/nn/precision.h"
#include "lib/probe/probe_job.h"
#include "lib/report/table.h"

namespace trainwright {
namespace {

using nlohmann::ordered_json;

ordered_json VersionOrNull(const std::optional<int>& version) {
  return version ? ordered_json(CudaVersionText(*version)) : ordered_json();
}

ordered_json TextOrNull(const std::string& text) {
  return text.empty() ? ordered_json() : ordered_json(text);
}

/// The names of what is null in an object, "host.numa_nodes".
void AddNulls(const ordered_json& json, const std::string& name, std::vector<std::string>* names) {
  if (json.is_null()) names->push_back(name);
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) AddNulls(value, name + "." + key, names);
  }
  if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) AddNulls(json[i], name + "[" + std::to_string(i) + "]", names);
  }
}

ordered_json EncodeAll(const std::vector<AttentionAnswer>& answers) {
  ordered_json all = ordered_json::array();
  for (const AttentionAnswer& answer : answers) all.push_back(EncodeAttentionAnswer(answer));
  return all;
}

ordered_json FastProducts(const ProbeReport& report) {
  ordered_json fast = {"fp32"};
  for (const Precision precision : {Precision::kBf16, Precision::kFp16}) {
    if (HasFastProducts(precision, at::Device(report.device))) fast.push_back(PrecisionName(precision));
  }
  return fast;
}

std::string Known(const std::optional<std::string>& text) {
  return text.value_or("unknown");
}
std::string Known(const std::optional<int>& number) {
  return number ? std::to_string(*number) : "unknown";
}
std::string KnownBytes(const std::optional<int64_t>& bytes) {
  return bytes ? FormatBytes(static_cast<uint64_t>(*bytes)) : "unknown";
}
std::string YesNo(const std::optional<bool>& value) {
  return !value ? "unknown" : *value ? "on" : "off";
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text.empty() ? "none" : text;
}

std::string FormatIdentity(const ProbeReport& report) {
  const HostInfo& host = report.host;
  Table table({"", ""});
  table.AddRow({"CPU", Known(host.cpu_model)});
  table.AddRow({"cores", "physical " + Known(host.physical_cores) + ", logical " +
                             Known(host.logical_processors) + ", usable here " +
                             std::to_string(host.usable_processors.size()) + ", NUMA nodes " +
                             Known(host.numa_nodes)});
  table.AddRow({"instructions", Joined(host.isa)});
  table.AddRow({"memory", KnownBytes(host.memory_total_bytes) + ", available " +
                              KnownBytes(host.memory_available_bytes)});
  table.AddRow(
      {"control group",
       host.cgroup.version == 0
           ? "none"
           : "version " + std::to_string(host.cgroup.version) + ", processors " +
                 (host.cgroup.cpus ? FormatFixed(*host.cgroup.cpus, 2) : "unlimited") + ", memory " +
                 (host.cgroup.memory_bytes ? FormatBytes(static_cast<uint64_t>(*host.cgroup.memory_bytes))
                                           : "unlimited")});
  table.AddRow({"disk", report.disk.folder + ": " + Known(report.disk.file_system) + ", free " +
                            KnownBytes(report.disk.free_bytes)});
  table.AddRow({"software",
                "kernel " + Known(host.kernel) + ", " + report.torch_build + ", " + report.cpu_capability});
  const GpuVerdict& verdict = report.verdict;
  table.AddRow(
      {"GPU", GpuStateName(verdict.state) + (verdict.problem.empty() ? "" : ": " + verdict.problem)});
  if (!verdict.hint.empty()) table.AddRow({"", verdict.hint});
  for (const GpuInfo& gpu : report.evidence.gpus) {
    table.AddRow({"GPU " + std::to_string(gpu.index),
                  Known(gpu.name) + ", " + Known(gpu.uuid) + ", compute capability " +
                      (gpu.capability ? gpu.capability->text() : "unknown") + ", " + Known(gpu.sm_count) +
                      " SMs"});
    table.AddRow({"", "memory " + KnownBytes(gpu.memory_total_bytes) + ", free " +
                          KnownBytes(gpu.memory_free_bytes) + ", ECC " + YesNo(gpu.ecc) + ", MIG " +
                          YesNo(gpu.mig)});
    table.AddRow(
        {"", "clocks now " + Known(gpu.sm_clock_mhz) + " of " + Known(gpu.sm_clock_max_mhz) + " MHz, power " +
                 (gpu.power_draw_w ? FormatFixed(*gpu.power_draw_w, 0) : "unknown") + " of " +
                 (gpu.power_limit_w ? FormatFixed(*gpu.power_limit_w, 0) : "unknown") + " W, slowed by " +
                 (gpu.throttle_reasons ? Joined(*gpu.throttle_reasons) : "unknown") + ", processes " +
                 (gpu.processes ? std::to_string(gpu.processes->size()) : "unknown")});
  }
  return table.ToString();
}

std::string FormatMeasured(const ProbeReport& report) {
  Table table({"measured", "device", "by", "size", "threads", "best", "median", "spread", "of spec"});
  for (const Measurement& one : report.measured) {
    table.AddRow({one.what + (one.dtype ? " " + *one.dtype : ""), one.device, one.method, one.size,
                  one.threads ? std::to_string(*one.threads) : "-", FormatRate(one.rate.best, one.unit),
                  FormatRate(one.rate.median, one.unit),
                  one.rate.spread ? FormatFixed(*one.rate.spread * 100, 1) + " %" : "-",
                  one.fraction_of_spec ? FormatFixed(*one.fraction_of_spec * 100, 1) + " %" : "-"});
  }
  return table.ToString();
}

}  // namespace

ordered_json EncodeProbeReport(const ProbeReport& report) {
  const ordered_json host = EncodeHostInfo(report.host), disk = EncodeDiskInfo(report.disk);
  ordered_json gpus = ordered_json::array(), measured = ordered_json::array();
  for (const GpuInfo& gpu : report.evidence.gpus) gpus.push_back(EncodeGpuInfo(gpu));
  for (const Measurement& one : report.measured) measured.push_back(EncodeMeasurement(one));

  std::vector<std::string> warnings = report.warnings, unknown;
  ordered_json told = host;
  told.erase("cgroup");  // nothing there is no limit
  AddNulls(told, "host", &unknown);
  AddNulls(disk, "disk", &unknown);
  AddNulls(gpus, "gpu.devices", &unknown);
  for (const std::string& name : unknown)
    warnings.push_back(name + " is unknown: the system does not report it");

  return {{"schema", "trainwright.gpu-probe/1"},
          {"time", report.time},
          {"label", report.label},
          {"versions",
           {{"trainwright", TRAINWRIGHT_VERSION},
            {"torch", report.torch_build},
            {"cuda_runtime", VersionOrNull(report.cuda_runtime_version)},
            {"cuda_driver", VersionOrNull(report.evidence.driver_cuda_version)},
            {"nvidia_driver", OrNull(report.evidence.driver_version)}}},
          {"settings",
           {{"device", report.device},
            {"threads", report.threads},
            {"model", report.model.name},
            {"sequence_tokens", report.model.sequence_tokens},
            {"vocab_size", report.vocab_size},
            {"environment", report.environment}}},
          {"host", host},
          {"disk", disk},
          {"gpu",
           {{"state", GpuStateName(report.verdict.state)},
            {"problem", TextOrNull(report.verdict.problem)},
            {"hint", TextOrNull(report.verdict.hint)},
            {"visible_devices", OrNull(report.evidence.visible_devices)},
            {"used", report.verdict.gpu ? ordered_json(report.evidence.gpus[*report.verdict.gpu].index)
                                        : ordered_json()},
            {"devices", gpus}}},
          {"optimizations",
           {{"cpu_capability", report.cpu_capability},
            {"fast_products", FastProducts(report)},
            {"attention", EncodeAll(report.attention)}}},
          {"measured", measured},
          {"batch_search", report.batch ? EncodeBatchSearch(*report.batch) : ordered_json()},
          {"recommendation", EncodeRecommendation(report.recommendation)},
          {"warnings", warnings}};
}

std::string FormatProbeReport(const ProbeReport& report) {
  std::string text = FormatIdentity(report);
  text +=
      "\nCeilings, " + report.label + " measurements; spread is the interquartile range over the median\n";
  text += FormatMeasured(report);
  if (report.batch && !report.batch->points.empty()) {
    text += "\nTraining " + report.model.name + " at " + std::to_string(report.model.sequence_tokens) +
            " tokens: forward and backward passes\n";
    Table table({"batch", "tokens/s", "spread", "activations"});
    for (const BatchPoint& point : report.batch->points) {
      table.AddRow({std::to_string(point.batch), FormatCount(point.tokens.median),
                    point.tokens.spread ? FormatFixed(*point.tokens.spread * 100, 1) + " %" : "-",
                    FormatBytes(static_cast<uint64_t>(point.activation_bytes))});
    }
    text += table.ToString();
  }
  text += "\nAttention backends on " + report.device + ": the sizes of heads that each takes\n";
  text += FormatAttention(report.attention);
  text += "\nRecommendation\n" + FormatRecommendationYaml(report.recommendation);
  for (const std::string& warning : report.warnings) text += "warning: " + warning + "\n";
  return text;
}

}  // namespace trainwright
