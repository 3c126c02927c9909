/// The options of `train` that suit a machine, each with its reason: a decision table over what the hardware
/// can do and what was measured, never over names.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/machine/gpu_state.h"
#include "lib/machine/host_info.h"
#include "lib/machine/measurement.h"
#include "lib/memory/batch_search.h"
#include "lib/memory/fitting_step.h"
#include "lib/nn/attention/attention_backend.h"
#include "lib/nn/precision.h"
#include "lib/spec/cpu_gemms.h"

namespace trainwright {

/// What a GPU of a compute capability computes well with, whether this build has kernels for it or not.
struct GpuAdvice {
  Precision precision = Precision::kFp32;
  AttentionBackend attention = AttentionBackend::kMath;
  std::string reason;
};
/// From 8.0 bf16 and flash; from 7.0 fp16 (tensor cores that have no bf16) and efficient; below, fp32.
GpuAdvice AdviseGpu(Capability capability);

/// The model that the advice is for.
struct ProbedModel {
  std::string name;  ///< a preset, or a path
  bool named_by_user = false;
  int64_t head_dim = 0;  ///< 0: no attention
  int64_t sequence_tokens = 0;
  bool sequence_named_by_user = false;
  /// What train makes of the usual micro-batch where a GPU is estimated to be too small for it.
  std::optional<DividedStep> fitting_step = {};
  int64_t resident_bytes = 0;  ///< of training, whatever the batch: see StateMemory
  std::string memory_advice;   ///< where not even one sample fits: see MemoryAdvice
};

struct RecommendationEvidence {
  HostInfo host;
  GpuVerdict verdict;
  std::optional<GpuInfo> gpu;  ///< the one that the verdict is about
  std::vector<Measurement> measured;
  std::optional<BatchSearch> batch;
  ProbedModel model;
  CpuGemms gemms = {};                   ///< by which the CPU computes
  std::optional<double> bf16_gain = {};  ///< of these, as IsBf16Worthwhile takes it
};

struct Choice {
  std::string option;  ///< of train, without dashes: "batch"
  nlohmann::ordered_json value;
  std::string reason;
};

/// An option that is left to train's own default, because what decides it was not measured well enough.
struct Undecided {
  std::string option, reason;
};

struct Recommendation {
  std::vector<Choice> choices;
  std::vector<Undecided> undecided;
  std::vector<std::string> notes;  ///< advice that no option of train carries

  const Choice* Find(const std::string& option) const;
};

/// The precision is the one that --mixed-precision auto comes to; what train finds by timing is left to
/// train.
Recommendation Recommend(const RecommendationEvidence& evidence);

/// The precision alone, which the search for a batch needs to know before: fp32 where it is undecided.
Precision RecommendPrecision(const RecommendationEvidence& evidence);

/// A file for `train --config`; reasons, what is undecided and notes are its comments.
std::string FormatRecommendationYaml(const Recommendation& recommendation);
nlohmann::ordered_json EncodeRecommendation(const Recommendation& recommendation);

}  // namespace trainwright
