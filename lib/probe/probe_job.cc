#include "lib/probe/probe_job.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/base/utc_time.h"
#include "lib/device/cuda_backend.h"
#include "lib/device/determinism.h"
#include "lib/device/device_memory.h"
#include "lib/device/memory_error.h"
#include "lib/io/byte_source.h"
#include "lib/machine/cuda_driver.h"
#include "lib/machine/disk_ceiling.h"
#include "lib/memory/fitting_step.h"
#include "lib/memory/memory_advice.h"
#include "lib/memory/training_memory.h"
#include "lib/nn/linear/gemm_kernels.h"
#include "lib/probe/gemm_ceiling.h"
#include "lib/probe/memory_ceiling.h"
#include "lib/probe/transfer_ceiling.h"
#include "lib/spec/config_json.h"
#include "lib/spec/family.h"
#include "lib/spec/usual_sizes.h"

namespace trainwright {
namespace {

/// Variables that change what is measured.
constexpr const char* kVariables[] = {
    "CUDA_VISIBLE_DEVICES",   "CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",        "OMP_PROC_BIND",     "GOMP_CPU_AFFINITY",    "GOMP_SPINCOUNT",
    "MKL_NUM_THREADS",        "MKL_CBWR",          "ATEN_CPU_CAPABILITY",  "ONEDNN_MAX_CPU_ISA",
    "PYTORCH_CUDA_ALLOC_CONF"};

/// Seconds for each measurement of a kind; together with loading and the attention matrix they stay within
/// 2 s and 10 s.
struct TimePlan {
  std::string label;
  double gemm_s, memory_s, transfer_s, disk_s, batch_s;
  double total_s;    ///< the batch, which comes last, gets what is left of it
  bool all_kernels;  ///< torch's products beside training's, memory by one thread too
};

TimePlan PlanTime(const ProbeOptions& options) {
  if (options.sustained_s > 0) {
    const double s = options.sustained_s;
    return {"sustained", s, s, s, s, std::max(s, 4.0), std::numeric_limits<double>::infinity(), true};
  }
  if (options.quick) return {"quick", 0.08, 0.02, 0.03, 0.05, 0.4, 1.1, false};
  return {"short", 0.6, 0.1, 0.15, 0.5, 4.0, 8.5, true};
}

bool IsConfigPath(const std::string& model) {
  return model.find('/') != std::string::npos || model.ends_with(".json") ||
         std::filesystem::is_directory(model);
}

ModelConfig ConfigOf(const FamilyList& families, const std::string& model, int64_t vocab_size) {
  if (!IsConfigPath(model)) return families.PresetConfig(model, vocab_size);
  const std::string path = std::filesystem::is_directory(model) ? model + "/config.json" : model;
  const std::vector<uint8_t> text = ReadWholeFile(path, 1 << 20);
  return DecodeConfigJson(families, std::string(AsText(text)), path);
}

class ProbeJob {
 public:
  ProbeJob(const ModelFamilies& families, const OptimizerRegistry& optimizers, const ProbeOptions& options)
      : families_(families), optimizers_(optimizers), options_(options), plan_(PlanTime(options)) {}

  ProbeReport Run() {
    report_.time = Rfc3339Now();
    report_.label = plan_.label;
    Identify();
    ChooseModel();
    if (!gpu()) bf16_gain_ = options_.set_up_kernels();
    MeasureGemms();
    if (gpu()) MeasureGpuMemory();
    MeasureMemoryOfHost();
    MeasureDisk();
    report_.attention = AskAttention(device_, /*tries=*/true);
    MeasureBatch(RecommendPrecision(Evidence()));
    report_.recommendation = Recommend(Evidence());
    return std::move(report_);
  }

 private:
  bool gpu() const { return device_.is_cuda(); }
  bool requires_gpu() const { return !options_.gpu_required_by.empty(); }
  void Warn(const std::string& text) { report_.warnings.push_back(text); }

  void Identify() {
    report_.host = ReadHostInfo();
    report_.threads = options_.threads;
    report_.disk = ReadDiskInfo(options_.folder);
    report_.cpu_capability = CpuCapability();
    report_.torch_build = TorchBuild();
    report_.environment = nlohmann::ordered_json::object();
    for (const char* name : kVariables) {
      if (const char* value = std::getenv(name)) report_.environment[name] = value;
    }
    std::string problem;
    management_ = OpenNvml(&problem);
    report_.evidence = ReadGpuEvidence(management_.get());
    report_.cuda_runtime_version = LoadedCudaRuntime();
    if (management_ == nullptr && report_.evidence.driver_loads) {
      Warn("NVML cannot be used, so that clocks, power and processes are unknown: " + problem);
    }
    report_.verdict = JudgeGpus(report_.evidence);
    // Its libraries take a second to load: only where a GPU waits for them.
    if (report_.verdict.state == GpuState::kUsable && (options_.use_gpu || requires_gpu())) {
      const CudaBackend& backend = ProcessCudaBackend();
      report_.evidence.backend_problem = backend.problem;
      report_.evidence.backend_hint = backend.hint;
      report_.verdict = JudgeGpus(report_.evidence);
    }
    if (requires_gpu() && report_.verdict.state != GpuState::kUsable) {
      throw Error(ErrorCode::kDevice, options_.gpu_required_by, report_.verdict.problem,
                  GpuStateName(report_.verdict.state), report_.verdict.hint);
    }
    if (report_.verdict.state == GpuState::kUsable && options_.use_gpu) device_ = at::Device(at::kCUDA, 0);
    report_.device = gpu() ? "cuda" : "cpu";
  }

  void ChooseModel() {
    ProbedModel& model = report_.model;
    model.named_by_user = !options_.model.empty();
    model.name = model.named_by_user ? options_.model : families_.descriptions().DefaultPreset(gpu());
    config_ = ConfigOf(families_.descriptions(), model.name, options_.vocab_size);
    report_.vocab_size = config_.vocab_size;
    model.head_dim = config_.head_dim;
    model.sequence_named_by_user = options_.sequence_tokens > 0;
    model.sequence_tokens =
        model.sequence_named_by_user ? options_.sequence_tokens : UsualSequence(config_.max_positions);
    if (model.sequence_tokens > FamilyOf(config_).LongestSequence(config_)) {
      throw Error(ErrorCode::kUsage, "--seq",
                  std::to_string(model.sequence_tokens) + " is longer than the " +
                      std::to_string(config_.max_positions) + " positions of " + model.name);
    }
  }

  std::optional<GpuInfo> PresentGpu() const {
    if (!report_.verdict.gpu) return std::nullopt;
    return report_.evidence.gpus[*report_.verdict.gpu];
  }

  std::optional<GpuStrain> Strain() {
    if (!gpu() || management_ == nullptr || !report_.verdict.gpu) return std::nullopt;
    const std::vector<GpuInfo> gpus = management_->Gpus();
    if (*report_.verdict.gpu >= gpus.size()) return std::nullopt;
    const GpuInfo& now = gpus[*report_.verdict.gpu];
    return GpuStrain{now.sm_clock_mhz, now.power_draw_w};
  }

  /// Adds what `measure` gives; an error is a warning, but for a signal.
  void Measure(const std::string& what, const std::function<std::vector<Measurement>()>& measure) {
    ThrowIfStopped();
    try {
      const std::optional<GpuStrain> before = Strain();
      std::vector<Measurement> measured = measure();
      const std::optional<GpuStrain> after = Strain();
      for (Measurement& one : measured) {
        if (!one.rate.spread) Warn(what + " has too few samples to estimate its spread");
        if (one.device.starts_with("cuda")) one.before = before, one.after = after;
        report_.measured.push_back(std::move(one));
      }
    } catch (const std::exception& error) {
      const std::string text = error.what();
      Warn(what + " was not measured: " + text.substr(0, text.find('\n')));
    }
  }

  void MeasureGemms() {
    const std::string name = gpu() && PresentGpu() ? PresentGpu()->name.value_or("") : "";
    for (const auto& [type, kernel] : GemmsOf(device_)) {
      const bool beside = gpu() || kernel == GemmKernel::kTrainwright || type == GemmType::kFp16;
      if (!plan_.all_kernels && !beside) continue;
      Measure(GemmTypeName(type) + " product", [&, type = type, kernel = kernel] {
        return std::vector{MeasureGemm(device_, type, kernel,
                                       {.time_s = plan_.gemm_s, .largest = gpu() ? 8192 : 2048}, name)};
      });
    }
  }

  void MeasureGpuMemory() {
    Measure("GPU memory", [&] {
      const int64_t free_bytes = FreeDeviceBytes(device_);
      const int64_t size = free_bytes > 0 ? std::min<int64_t>(256 << 20, free_bytes / 8) : 64 << 20;
      return MeasureTransfers(device_, {.time_s = plan_.transfer_s, .size_bytes = size});
    });
  }

  void MeasureMemoryOfHost() {
    const int64_t bytes = MemoryArrayBytes(report_.host.last_level_cache_bytes.value_or(0),
                                           report_.host.memory_for_process().value_or(0));
    std::vector<int> counts = {report_.threads};
    if (plan_.all_kernels && report_.threads > 1) counts.insert(counts.begin(), 1);
    for (const int threads : counts) {
      Measure("memory", [&] {
        const int64_t size = options_.quick ? std::min<int64_t>(bytes, 32 << 20) : bytes;
        return MeasureMemory(threads, {.time_s = plan_.memory_s, .array_bytes = size});
      });
    }
  }

  void MeasureDisk() {
    if (options_.disk_bytes == 0) return;
    Measure("disk_write", [&] {
      const auto free_bytes = static_cast<uint64_t>(report_.disk.free_bytes.value_or(0));
      const uint64_t bytes = std::min(options_.disk_bytes, free_bytes / 4);
      if (bytes < kLeastDiskBytes) throw Error(ErrorCode::kIo, options_.folder, "has too little free space");
      return std::vector{MeasureDiskWrite(options_.folder, {.time_s = plan_.disk_s, .size_bytes = bytes})};
    });
  }

  void MeasureBatch(Precision precision) {
    ThrowIfStopped();
    const MemoryRequest training = {
        .model = config_, .precision = precision, .device = device_, .optimizers = optimizers_};
    report_.model.resident_bytes = StateMemory(families_, training).total();
    const int64_t memory = gpu() ? FreeDeviceBytes(device_) : report_.host.memory_for_process().value_or(0);
    if (memory == 0) Warn("free memory is unknown: the batch is not bounded by it");
    double flops_per_s = 0;
    for (const Measurement& one : report_.measured) {
      if (one.what == "gemm" && one.dtype == PrecisionName(precision)) {
        flops_per_s = std::max(flops_per_s, one.rate.median);
      }
    }
    try {
      report_.batch = SearchBatch(
          families_, {.training = training,
                      .passes =
                          [&](int64_t samples) {
                            return EqualSamplePasses(config_, samples, report_.model.sequence_tokens);
                          },
                      .time_s = std::min(plan_.batch_s, plan_.total_s - SecondsSince(start_)),
                      .memory_bytes = memory,
                      .flops_per_s = flops_per_s});
      if (gpu()) FitUsualBatch(training);
      if (report_.batch->stop == BatchStop::kMemory && !report_.batch->chosen) {
        const ModelInput one_sample = EqualSamples(1, report_.model.sequence_tokens);
        report_.model.memory_advice = MemoryAdvice(families_, TrainingMemory(families_, training, one_sample),
                                                   training, /*auto_oom=*/false);
      }
    } catch (const std::exception& error) {
      const std::string text = error.what();
      Warn("the batch was not measured: " + text.substr(0, text.find('\n')));
    }
  }

  void FitUsualBatch(const MemoryRequest& training) {
    const int64_t whole_bytes = WholeDeviceBytes(device_);
    if (whole_bytes == 0) return;
    const int64_t sequence_tokens = report_.model.sequence_tokens, usual = UsualBatch(sequence_tokens, gpu());
    const int64_t fits = HalveToFit(
        usual, MemoryToFit(whole_bytes, StateMemory(families_, training).of_model()), [&](int64_t samples) {
          return TrainingMemory(families_, training, EqualSamples(samples, sequence_tokens)).of_model();
        });
    if (fits > 0 && fits < usual) report_.model.fitting_step = DivideStep(usual, fits);
  }

  RecommendationEvidence Evidence() const {
    RecommendationEvidence evidence{.host = report_.host,
                                    .verdict = report_.verdict,
                                    .gpu = PresentGpu(),
                                    .measured = report_.measured,
                                    .batch = report_.batch,
                                    .model = report_.model,
                                    .gemms = ChosenCpuGemms(),
                                    .bf16_gain = bf16_gain_};
    if (!options_.use_gpu && evidence.verdict.state == GpuState::kUsable) {
      evidence.verdict = {GpuState::kHidden, "--device cpu was asked for", "leave it out",
                          evidence.verdict.gpu};
    }
    return evidence;
  }

  const ModelFamilies& families_;
  const OptimizerRegistry& optimizers_;
  const ProbeOptions& options_;
  const TimePlan plan_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  ProbeReport report_;
  std::unique_ptr<GpuManagement> management_;
  at::Device device_ = at::Device(at::kCPU);
  ModelConfig config_;
  std::optional<double> bf16_gain_;  // of the CPU
};

}  // namespace

ProbeReport RunProbe(const ModelFamilies& families, const OptimizerRegistry& optimizers,
                     const ProbeOptions& options) {
  return WithMemoryErrors([] { return MemoryUser{.doing = "measuring"}; },
                          [&] { return ProbeJob(families, optimizers, options).Run(); });
}

}  // namespace trainwright
