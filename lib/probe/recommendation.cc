#include "lib/probe/recommendation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "lib/base/error.h"
#include "lib/base/units.h"
#include "lib/device/gpu_limits.h"
#include "lib/formats/json_text.h"
#include "lib/nn/peak_rate.h"
#include "lib/spec/usual_sizes.h"

namespace trainwright {
namespace {

/// As train's own default; see PlanLoader.
constexpr int kMostGpuWorkers = 4;

std::string Percent(double share) {
  return FormatFixed(share * 100, 0) + " %";
}

std::string PrecisionOption(Precision precision) {
  return precision == Precision::kFp32 ? "no" : PrecisionName(precision);
}

/// Why nothing may hang on a measurement; empty: something may.
std::string Unsteady(const Rate& rate, const std::string& what) {
  if (!rate.spread) return what + " has too few samples to estimate its spread";
  if (*rate.spread <= kLargestSpread) return "";
  return what + " spreads by " + Percent(*rate.spread) + ", more than " + Percent(kLargestSpread) +
         ": measure again on a quiet machine";
}

class Recommender {
 public:
  explicit Recommender(const RecommendationEvidence& evidence)
      : evidence_(evidence),
        gpu_(evidence.verdict.state == GpuState::kUsable),
        gpu_name_(evidence.gpu ? evidence.gpu->name.value_or("") : "") {}

  Precision ChoosePrecision() {
    gpu_ ? ChooseGpuPrecision() : ChooseCpuPrecision();
    return precision_;
  }

  Recommendation Run() {
    Choose("device", gpu_ ? "cuda" : "cpu",
           gpu_ ? "a GPU of compute capability " + DeviceCapability().text() + " is ready"
                : evidence_.verdict.problem);
    ChoosePrecision();
    if (evidence_.model.named_by_user) {
      Choose("model", evidence_.model.name, "as asked; batch and attention are for it");
    }
    if (evidence_.model.named_by_user || evidence_.model.sequence_named_by_user) {
      Choose("seq", evidence_.model.sequence_tokens, "what the batch was decided for");
    }
    ChooseBatch();
    ChooseAttention();
    ChooseHost();
    ChoosePeak();
    Note();
    return std::move(result_);
  }

 private:
  void Choose(const std::string& option, nlohmann::ordered_json value, std::string reason) {
    result_.choices.push_back({option, std::move(value), std::move(reason)});
  }
  void Leave(const std::string& option, std::string reason) {
    result_.undecided.push_back({option, std::move(reason)});
  }
  /// A usable GPU always tells it.
  Capability DeviceCapability() const {
    return evidence_.gpu && evidence_.gpu->capability ? *evidence_.gpu->capability : Capability{8, 0};
  }

  const Measurement* Gemm(const std::string& dtype) const {
    for (const Measurement& one : evidence_.measured) {
      const bool here = one.device.starts_with("cuda") == gpu_;
      if (one.what == "gemm" && one.dtype == dtype && one.method == "trainwright" && here) return &one;
    }
    return nullptr;
  }

  void ChooseGpuPrecision() {
    const GpuAdvice advice = AdviseGpu(DeviceCapability());
    precision_ = advice.precision;
    Choose("mixed-precision", PrecisionOption(precision_), advice.reason);
  }

  void ChooseCpuPrecision() {
    const CpuGemms& gemms = evidence_.gemms;
    const std::optional<double>& gain = evidence_.bf16_gain;
    if (gemms.bf16 != CpuGemms::Bf16::kEmulated && gain) {
      for (const std::string& dtype : {PrecisionName(Precision::kFp32), PrecisionName(Precision::kBf16)}) {
        const Measurement* const one = Gemm(dtype);
        if (one == nullptr) continue;
        const std::string problem = Unsteady(one->rate, "the rate of " + dtype + " GEMMs");
        if (!problem.empty()) return Leave("mixed-precision", problem);
      }
    }
    const bool worth = IsBf16Worthwhile(gemms, gain);
    if (worth) precision_ = Precision::kBf16;
    Choose("mixed-precision", PrecisionOption(precision_), "the CPU has " + WhyCpuPrecision(worth));
  }

  std::string WhyCpuPrecision(bool worth) const {
    const HostInfo& host = evidence_.host;
    const std::string instructions = host.has("amx_bf16")      ? "amx_bf16"
                                     : host.has("avx512_bf16") ? "avx512_bf16"
                                                               : "no bf16 instructions";
    if (evidence_.gemms.bf16 == CpuGemms::Bf16::kEmulated) {
      return instructions + ", and GEMMs in bf16 run in fp32 on rounded values, which gains no speed";
    }
    if (evidence_.bf16_gain) {
      return instructions + ", and GEMMs in bf16 were measured at " + FormatFixed(*evidence_.bf16_gain, 2) +
             " times the rate of fp32" + (worth ? "" : ", which is not worth the rounding");
    }
    return instructions + (worth ? ", and GEMMs in bf16 are computed by them"
                                 : ", and GEMMs in bf16 compute in fp32's units, which gains no speed");
  }

  void ChooseBatch() {
    const ProbedModel& model = evidence_.model;
    const std::string subject = model.name + " at " + std::to_string(model.sequence_tokens) + " tokens";
    const int64_t usual = UsualBatch(model.sequence_tokens, gpu_);
    const auto& search = evidence_.batch;
    // A search that time ended on the rise still beats the rule of thumb once it has come as far.
    const bool rising = search && !search->chosen && search->stop == BatchStop::kTime &&
                        !search->points.empty() && search->points.back().batch >= usual;
    if (rising || (search && search->chosen)) {
      const BatchPoint& chosen = rising ? search->points.back() : *search->chosen;
      for (const BatchPoint& point : search->points) {
        const std::string problem =
            Unsteady(point.tokens, "the speed of " + subject + " with batch " + std::to_string(point.batch));
        if (problem.empty()) continue;
        Leave("batch", problem);
        Leave("accum", "it follows the batch");
        return;
      }
      Choose("batch", chosen.batch,
             "measured with forward and backward passes of " + subject + ": " +
                 (rising ? "the largest in the time that was given, and the fastest, "
                         : "the smallest batch within 3 % of the fastest, ") +
                 FormatCount(chosen.tokens.median) + " tokens/s" +
                 (search->stop == BatchStop::kMemory ? "; larger ones do not fit into 90 % of the free memory"
                                                     : ""));
      const int64_t accum = AccumOfMeasuredBatch(chosen.batch, /*ranks=*/1);
      Choose("accum", accum,
             std::to_string(chosen.batch * accum) + " samples an optimizer step: at least " +
                 std::to_string(kLeastSamplesAStep) + " keep gradients from being noisy");
      result_.notes.push_back(
          "not needed for " + subject +
          ", which fits the memory: checkpoint-activations, offload, and zero on several GPUs");
    } else if (search && search->stop == BatchStop::kMemory) {
      Leave("batch", subject + " does not fit into 90 % of the free memory with one sample (training keeps " +
                         FormatBytes(static_cast<uint64_t>(model.resident_bytes)) + " besides)");
      Leave("accum", "it follows the batch");
      if (!model.memory_advice.empty()) {
        result_.notes.push_back("memory, in this order: " + model.memory_advice);
      }
    } else {
      ChooseUsualBatch(usual, subject);
    }
  }

  void ChooseUsualBatch(int64_t usual, const std::string& subject) {
    const auto& search = evidence_.batch;
    const DividedStep step = evidence_.model.fitting_step.value_or(DividedStep{.batch = usual, .accum = 1});
    Choose(
        "batch", step.batch,
        "not measured" +
            std::string(search && !search->points.empty() ? " far enough in the time that was given" : "") +
            "; about " + std::to_string(UsualMicroBatchTokens(gpu_)) + " tokens a micro-batch suit " +
            (gpu_ ? "a GPU" : "a CPU") + " (" + subject + "), as train takes by itself" +
            (step.batch < usual ? ", but they do not fit its memory" : ""));
    Choose("accum", step.accum, "as train takes by itself");
  }

  void ChooseAttention() {
    if (evidence_.model.head_dim == 0) return;  // a family without attention
    if (!gpu_) {
      Choose("attn-backend", "auto", "on a CPU training's own kernels are the fast ones");
      return;
    }
    const GpuLimits limits = LimitsOf(
        {.capability_major = DeviceCapability().major, .capability_minor = DeviceCapability().minor});
    const int64_t head_dim = evidence_.model.head_dim;
    const at::ScalarType dtype = PrecisionDtype(precision_);
    const AttentionBackend backend =
        ResolveAttentionBackend(AttentionBackend::kAuto, head_dim, dtype, limits);
    const std::string heads =
        "heads of " + std::to_string(head_dim) + " elements of " + PrecisionName(precision_);
    if (backend == AttentionBackend::kFlash &&
        TakesHeads(AttentionBackend::kCudnn, head_dim, dtype, limits)) {
      Choose("attn-backend", "auto",
             "flash and cudnn take " + heads + ", and train times both before its first step");
      return;
    }
    Choose("attn-backend", AttentionBackendName(backend), "the fastest that takes " + heads);
  }

  void ChooseHost() {
    const HostInfo& host = evidence_.host;
    const int cores = host.compute_cores();
    Choose("threads", cores,
           host.cgroup.cpus && cores < host.usable_physical_cores.value_or(1)
               ? "the control group gives the time of " + FormatFixed(*host.cgroup.cpus, 1) + " processors"
               : "the physical cores that this process may use");
    Choose("workers", gpu_ ? std::clamp(cores / 2, 1, kMostGpuWorkers) : 1,
           gpu_ ? "half of " + std::to_string(cores) + " cores, at most 4, are free while the GPU computes"
                : "one thread decodes far faster than a CPU trains, and training needs the cores");
    Choose("pin", gpu_ ? "on" : "off", gpu_ ? PinReason() : "a CPU reads micro-batches where they are");
  }

  std::string PinReason() const {
    const Measurement *pinned = nullptr, *pageable = nullptr;
    for (const Measurement& one : evidence_.measured) {
      if (one.what == "h2d_pinned") pinned = &one;
      if (one.what == "h2d_pageable") pageable = &one;
    }
    if (pinned == nullptr || pageable == nullptr || !IsSteady(pinned->rate) || !IsSteady(pageable->rate)) {
      return "copies through pinned memory are not waited for";
    }
    return "copies through pinned memory are not waited for, and run at " +
           FormatFixed(pinned->rate.median / pageable->rate.median, 1) + " times the rate of pageable ones";
  }

  void ChoosePeak() {
    if (gpu_ && PublishedPeakRate(gpu_name_, precision_)) {
      result_.notes.push_back("peak-tflops: train knows the published rate of " + gpu_name_);
      return;
    }
    const Measurement* gemm = Gemm(PrecisionName(precision_));
    if (gemm == nullptr) {
      Leave("peak-tflops", "no rate of " + PrecisionName(precision_) + " GEMMs was measured");
    } else if (const std::string problem = Unsteady(gemm->rate, "the rate of GEMMs"); !problem.empty()) {
      Leave("peak-tflops", problem);
    } else {
      Choose("peak-tflops", std::round(gemm->rate.best / 1e9) / 1e3,
             "the best rate of " + PrecisionName(precision_) +
                 " GEMMs that was measured; no published one is known. train computes mfu from it");
    }
  }

  void Note() {
    auto& notes = result_.notes;
    const auto& gpu = evidence_.gpu;
    if (evidence_.verdict.state == GpuState::kArchitectureNotBuilt && gpu && gpu->capability) {
      const GpuAdvice advice = AdviseGpu(*gpu->capability);
      notes.push_back("GPU " + std::to_string(gpu->index) + " would take mixed-precision " +
                      PrecisionOption(advice.precision) + " and attn-backend " +
                      AttentionBackendName(advice.attention) + " (" + advice.reason +
                      "), but this build has no kernels for it");
    } else if (!gpu_ && gpu) {
      notes.push_back("the GPU is not used: " + evidence_.verdict.problem + "; " + evidence_.verdict.hint);
    }
    if (!gpu) return;
    for (const std::string& reason : gpu->throttle_reasons.value_or(std::vector<std::string>{})) {
      if (reason == "idle") continue;
      notes.push_back("the GPU is slowed down now: " + reason);
    }
    for (const GpuProcess& process : gpu->processes.value_or(std::vector<GpuProcess>{})) {
      notes.push_back(
          "process " + std::to_string(process.pid) + (process.name ? " (" + *process.name + ")" : "") +
          " is on the GPU" +
          (process.memory_bytes ? " with " + FormatBytes(static_cast<uint64_t>(*process.memory_bytes)) : ""));
    }
    if (gpu->mig.value_or(false)) notes.push_back("MIG is on: a part of the GPU computes, not all of it");
  }

  const RecommendationEvidence& evidence_;
  const bool gpu_;
  const std::string gpu_name_;
  Precision precision_ = Precision::kFp32;
  Recommendation result_;
};

/// A comment must stay one.
std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

}  // namespace

GpuAdvice AdviseGpu(Capability capability) {
  if (capability >= Capability{8, 0}) {
    return {
        Precision::kBf16, AttentionBackend::kFlash,
        "compute capability " + capability.text() + " has tensor cores for bf16, which needs no loss scale"};
  }
  if (capability >= Capability{7, 0}) {
    return {Precision::kFp16, AttentionBackend::kEfficient,
            "compute capability " + capability.text() + " has tensor cores for fp16 and none for bf16"};
  }
  return {Precision::kFp32, AttentionBackend::kMath,
          "compute capability " + capability.text() + " has no tensor cores"};
}

const Choice* Recommendation::Find(const std::string& option) const {
  for (const Choice& choice : choices) {
    if (choice.option == option) return &choice;
  }
  return nullptr;
}

Recommendation Recommend(const RecommendationEvidence& evidence) {
  TRAINWRIGHT_CHECK(evidence.model.sequence_tokens > 0);
  return Recommender(evidence).Run();
}

Precision RecommendPrecision(const RecommendationEvidence& evidence) {
  return Recommender(evidence).ChoosePrecision();
}

std::string FormatRecommendationYaml(const Recommendation& recommendation) {
  std::string yaml = "# For train --config, by gpu-probe.\n";
  for (const Choice& choice : recommendation.choices) {
    yaml += "# " + OneLine(choice.reason) + "\n" + choice.option + ": " + JsonLineOf(choice.value);
  }
  for (const Undecided& open : recommendation.undecided) {
    yaml += "# " + open.option + " is left to train: " + OneLine(open.reason) + "\n";
  }
  for (const std::string& note : recommendation.notes) yaml += "# note: " + OneLine(note) + "\n";
  return yaml;
}

nlohmann::ordered_json EncodeRecommendation(const Recommendation& recommendation) {
  nlohmann::ordered_json choices = nlohmann::ordered_json::array(), undecided = choices;
  for (const Choice& choice : recommendation.choices) {
    choices.push_back({{"option", choice.option}, {"value", choice.value}, {"reason", choice.reason}});
  }
  for (const Undecided& open : recommendation.undecided) {
    undecided.push_back({{"option", open.option}, {"reason", open.reason}});
  }
  return {{"options", choices},
          {"undecided", undecided},
          {"notes", recommendation.notes},
          {"yaml", FormatRecommendationYaml(recommendation)}};
}

}  // namespace trainwright
