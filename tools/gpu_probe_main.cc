#include <unistd.h>

#include <memory>
#include <optional>
#include <string>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/device/determinism.h"
#include "lib/device/process_setup.h"
#include "lib/formats/indented_json.h"
#include "lib/io/byte_sink.h"
#include "lib/machine/disk_ceiling.h"
#include "lib/machine/host_info.h"
#include "lib/machine/watch_job.h"
#include "lib/model/built_in_families.h"
#include "lib/nn/linear/gemm_kernels.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/probe/cpu_gemm_choice.h"
#include "lib/probe/probe_job.h"
#include "lib/report/option_need.h"
#include "tools/gpu_probe_options.h"

namespace trainwright {
namespace {

/// The option that asks for a GPU, as typed; empty: none does.
std::string GpuRequiredBy(const GpuProbeOptions& options) {
  if (options.require_gpu) return "--require-gpu";
  return options.device == "cuda" ? "--device cuda" : "";
}

int Watch(const GpuProbeOptions& options) {
  std::string problem;
  const std::unique_ptr<GpuManagement> management = OpenNvml(&problem);
  const std::string required_by = GpuRequiredBy(options);
  if (management == nullptr && !required_by.empty()) {
    throw Error(ErrorCode::kDevice, required_by, "NVML cannot be used: " + problem);
  }
  if (management == nullptr) LogInfo("no GPU to watch: " + problem);
  const WatchOptions watch{.interval_s = options.interval_s,
                           .samples = options.samples,
                           .json = options.json,
                           .in_place = isatty(STDOUT_FILENO) == 1,
                           .pids = options.pids};
  StdoutSink out;
  return RunWatch(watch, management.get(), &out);
}

/// Those by which train computes on this machine.
/// \returns how many times as fast as fp32 bf16 is by them; nullopt: not measured
std::optional<double> TakeKernels(const std::string& kernels, int threads) {
  std::optional<double> bf16_gain;
  const CpuGemms gemms = ChooseCpuGemms({.kernels = kernels,
                                         .machine = [threads] { return ThisCpuGemmMachine(threads); },
                                         .cache_path = CpuGemmCachePath(),
                                         .announce = HoldInfo},
                                        &bf16_gain);
  ApplyCpuGemms(gemms, bf16_gain);
  return bf16_gain;
}

/// \param encoded the report as JSON
std::string TextOf(const ProbeReport& report, const nlohmann::ordered_json& encoded,
                   const GpuProbeOptions& options) {
  if (options.json) return IndentedJsonOf(options.recommend ? encoded["recommendation"] : encoded);
  return options.recommend ? FormatRecommendationYaml(report.recommendation) : FormatProbeReport(report);
}

int Run(const GpuProbeOptions& options, ToolRun* run) {
  if (!options.sustained) RefuseWithout("--sustained", {"seconds"}, run->options);
  if (options.watch) return Watch(options);
  RefuseWithout("--watch", {"interval", "samples", "pid"}, run->options);
  ProbeOptions probe{.quick = options.quick,
                     .sustained_s = options.sustained ? options.seconds : 0,
                     .gpu_required_by = GpuRequiredBy(options),
                     .use_gpu = options.device != "cpu",
                     .model = options.model,
                     .sequence_tokens = options.seq,
                     .vocab_size = options.vocab,
                     .folder = options.folder};
  probe.disk_bytes = ParseBytes(options.disk_size, "--disk-size");
  if (probe.disk_bytes > 0 && probe.disk_bytes < kLeastDiskBytes) {
    throw Error(ErrorCode::kUsage, "--disk-size", "must be 0 or at least 256KiB");
  }
  CheckKernelsOption(options.kernels);
  const int threads = options.threads > 0 ? options.threads : ReadHostInfo().compute_cores();
  probe.threads = SetUpProcess({.threads = threads}).threads;
  probe.set_up_kernels = [&] { return TakeKernels(options.kernels, probe.threads); };
  const ProbeReport report = RunProbe(BuiltInFamilies(), BuiltInOptimizers(), probe);
  const nlohmann::ordered_json encoded = EncodeProbeReport(report);
  run->summary["gpu_state"] = encoded["gpu"]["state"];
  run->summary["recommendation"] = encoded["recommendation"]["options"];
  StdoutSink().Write(AsBytes(TextOf(report, encoded, options)));
  return 0;
}

}  // namespace
}  // namespace trainwright

int main(int argc, char** argv) {
  trainwright::PrepareDeterminism();
  trainwright::GpuProbeOptions options;
  return trainwright::RunTool(
      argc, argv, trainwright::GpuProbeInfo(),
      [&](CLI::App& app) { trainwright::DefineGpuProbeOptions(app, &options); },
      [&](trainwright::ToolRun& run) { return trainwright::Run(options, &run); });
}
