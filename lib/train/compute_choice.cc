#include "lib/train/compute_choice.h"

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/device/accelerator.h"
#include "lib/device/determinism.h"
#include "lib/device/offload_stack.h"
#include "lib/nn/linear/gemm_kernels.h"
#include "lib/nn/peak_rate.h"
#include "lib/run/loader_plan.h"
#include "lib/run/training_data.h"
#include "lib/spec/family.h"
#include "lib/spec/precision.h"

namespace trainwright {

ComputeChoice ChooseCompute(const TrainSettings& settings, const ProcessSetup& process) {
  ComputeChoice choice;
  choice.device = process.device;
  choice.identity = {.device = choice.device.str(),
                     .cpu_capability = CpuCapability(),
                     .torch_build = TorchBuild(),
                     .threads = process.threads,
                     .attention = settings.attn_backend,
                     .tf32 = settings.tf32 == "on" && !choice.device.is_cpu(),
                     .residual_stream = settings.residual_stream};
  if (choice.device.is_cpu()) choice.identity.choices.cpu_gemms = ChosenCpuGemms();
  HoldInfo("device " + choice.identity.device + ", " + std::to_string(process.threads) + " thread" +
           (process.threads == 1 ? "" : "s"));
  if (settings.empty_cache_every > 0 && choice.device.is_cpu()) {
    LogCommonWarning("--empty-cache-every has no effect on a CPU: there is no cache of GPU memory");
  }
  choice.bucket_bytes = BucketBytes(settings);
  choice.kinds.attention = ParseAttentionBackend(settings.attn_backend, "--attn-backend");
  if (!settings.ten_scan.empty()) choice.kinds.scan = ParseScanKind(settings.ten_scan, "--ten-scan");
  choice.identity.scan = ScanKindName(choice.kinds.scan);
  if (settings.residual_stream == PrecisionName(Precision::kBf16)) choice.kinds.residual = Precision::kBf16;
  choice.checkpointing =
      ParseActivationCheckpointing(settings.checkpoint_activations, "--checkpoint-activations");
  choice.compile = ParseCompileMode(settings.compile, "--compile");
  if (choice.compile == CompileMode::kGraph && choice.device.is_cpu()) {
    LogCommonWarning(
        "--compile graph has no effect on a CPU, where a step is compiled code without launches");
  }
  choice.offload = ParseOffloadChoice(settings.offload, "--offload");
  choice.offload_folder = settings.offload_dir.empty() ? TemporaryFolder() : settings.offload_dir;
  if (choice.offload.any() && choice.device.is_cpu()) {
    MakeOffloadStack(choice.device, choice.offload_folder);  // a folder that cannot have the file is told now
    if (IsInMemory(choice.offload_folder)) {
      LogCommonWarning(choice.offload_folder +
                       " lies in memory (tmpfs), so --offload gains nothing: name a folder on a disk by "
                       "--offload-dir");
    }
  }
  return choice;
}

void RequireResidualStream(const TrainSettings& settings, const TrainPlan& plan, const ModelConfig& model) {
  if (settings.residual_stream != PrecisionName(Precision::kBf16)) return;
  const std::string hint = "leave it out: the residual stream is fp32 then";
  if (!FamilyOf(model).has_bf16_stream()) {
    throw Error(ErrorCode::kUsage, "--residual-stream",
                std::string("bf16 has no meaning for a model of the family ") + FamilyOf(model).model_type() +
                    ", whose states are fp32",
                "", hint);
  }
  if (plan.precision == Precision::kBf16) return;
  throw Error(ErrorCode::kUsage, "--residual-stream",
              "bf16 goes with --mixed-precision bf16 alone, and this run computes in " +
                  PrecisionName(plan.precision) +
                  (settings.mixed_precision == "auto" ? ", to which auto came on this device" : ""),
              "", "give --mixed-precision bf16, or " + hint);
}

void ChooseLoader(const TrainSettings& settings, uint64_t data_tokens, ChoiceLog* log,
                  ComputeChoice* choice) {
  const PlannedLoader loader =
      PlanLoader(settings, IsAccelerator(choice->device), UsablePhysicalCores(), data_tokens);
  choice->loader = loader.options;
  choice->pin = loader.pin;
  log->Announce(loader.reasons);
}

std::optional<double> PeakTflops(const TrainSettings& settings, at::Device device, Precision precision) {
  if (settings.peak_tflops) return settings.peak_tflops;
  const auto published = PublishedPeakRate(GpuName(device), precision);
  return published ? std::optional(published->tflops) : std::nullopt;
}

int64_t LogEvery(const TrainSettings& settings, at::Device device) {
  constexpr int64_t kOnGpu = 10;
  return settings.log_every.value_or(device.is_cpu() ? 1 : kOnGpu);
}

}  // namespace trainwright
