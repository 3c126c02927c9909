#include "lib/train/memory_breakdown.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/units.h"

namespace trainwright {
namespace {

constexpr size_t kTensorsNamed = 2;

std::string Bytes(int64_t size) {
  return FormatBytes(static_cast<uint64_t>(size));
}

std::string LargestTensors(const FlatParameters& parameters) {
  std::vector<const Parameter*> sorted;
  for (const Parameter& parameter : parameters.all()) sorted.push_back(&parameter);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Parameter* a, const Parameter* b) { return a->size > b->size; });
  std::string text;
  for (size_t i = 0; i < std::min(kTensorsNamed, sorted.size()); ++i) {
    text += (i == 0 ? "" : ", ") + sorted[i]->name + " " + nlohmann::json(sorted[i]->shape).dump();
  }
  return text;
}

std::vector<std::pair<const char*, int64_t>> Parts(const MemoryBreakdown& memory) {
  return {{"params", memory.params},           {"grads", memory.grads},   {"optimizer", memory.optimizer},
          {"activations", memory.activations}, {"loader", memory.loader}, {"snapshot", memory.snapshot},
          {"runtime", memory.runtime},         {"heap", memory.heap}};
}

}  // namespace

MemoryBreakdown HeldByModel(LanguageModel& model) {
  FlatParameters& parameters = model.parameters();
  MemoryBreakdown memory;
  const auto values = static_cast<int64_t>(parameters.values().nbytes());
  memory.params = values + parameters.frozen_bytes();
  if (!parameters.compute().is_same(parameters.values())) {
    memory.params += static_cast<int64_t>(parameters.compute().nbytes());
  }
  memory.grads = parameters.gradient_buffer().memory_bytes();
  const ModelMemory held = model.memory();
  memory.activations = held.activation_bytes + held.logits_bytes;
  return memory;
}

MemoryBreakdown NeededByModel(const ModelFamilies& families, const ModelConfig& config, const TrainPlan& plan,
                              const OptimizerRegistry& optimizers, ActivationCheckpointing checkpointing,
                              const OffloadChoice& offload) {
  const auto shapes = MakeModel(families, config, plan.precision, at::Device(at::kMeta), std::nullopt,
                                AttentionBackend::kAuto, plan.tuning);
  shapes->set_activation_checkpointing(checkpointing);
  shapes->Offload(offload, "");
  MemoryBreakdown memory = HeldByModel(*shapes);
  memory.optimizer =
      MakeOptimizer(optimizers, &shapes->parameters(), plan.optimizer, plan.seed)->state_bytes();
  if (!FamilyOf(config).runs_on_gpu()) return memory;
  ModelInput input;
  const int64_t tokens = plan.batch * plan.sequence_tokens;
  input.tokens_n = at::zeros({tokens}, at::kLong);
  input.positions_n = at::zeros({tokens}, at::kLong);
  input.labels_n = at::zeros({tokens}, at::kLong);
  input.pin = false;
  for (int64_t i = 0; i <= plan.batch; ++i)
    input.span_starts.push_back(static_cast<int32_t>(i * plan.sequence_tokens));
  shapes->LossAndGradients(input, 1.0);
  memory.activations = HeldByModel(*shapes).activations;
  return memory;
}

std::string MemoryAdvice(const MemoryBreakdown& memory, const FlatParameters& parameters,
                         OptimizerStates states, ActivationCheckpointing checkpointing,
                         const OffloadChoice& offload, bool auto_oom) {
  std::string activations = auto_oom ? "" : "--auto-oom, ";
  if (checkpointing != ActivationCheckpointing::kFull) activations += "--checkpoint-activations full, ";
  if (!offload.activations) activations += "--offload activations, ";
  activations += "a lower --batch (raising --accum as much), a lower --seq";
  struct Advice {
    int64_t size_bytes;
    std::string text;
  };
  const int64_t state = memory.params + memory.grads + memory.optimizer;
  std::vector<Advice> advice = {
      {state, "weights with gradients and moments, " + Bytes(state) + ", the largest " +
                  LargestTensors(parameters) + ": " +
                  (states == OptimizerStates::kFp32 ? "--optimizer-states bf16 in a new run, " : "") +
                  (offload.gradients ? "" : "--offload gradients, ") + "a smaller --model"},
      {memory.activations, "activations, " + Bytes(memory.activations) + ": " + activations},
      {memory.snapshot, "the copy for checkpoints, " + Bytes(memory.snapshot) + ": --async-save off"},
      {memory.loader, "the loader, " + Bytes(memory.loader) + ": fewer --workers or a lower --prefetch"}};
  std::stable_sort(advice.begin(), advice.end(),
                   [](const Advice& a, const Advice& b) { return a.size_bytes > b.size_bytes; });
  std::string text;
  for (const Advice& part : advice) {
    if (part.size_bytes > 0) text += (text.empty() ? "" : "; ") + part.text;
  }
  return text;
}

nlohmann::ordered_json EncodeMemory(const MemoryBreakdown& memory, int64_t peak_bytes) {
  nlohmann::ordered_json json;
  for (const auto& [name, size] : Parts(memory)) json[name] = size;
  json["total"] = memory.total();
  json["peak"] = peak_bytes;
  return json;
}

std::string FormatMemory(const MemoryBreakdown& memory, int64_t peak_bytes) {
  std::vector<std::pair<const char*, int64_t>> parts = Parts(memory);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [name, size] : parts) {
    if (size > 0) text += (text.empty() ? "" : ", ") + std::string(name) + " " + Bytes(size);
  }
  return text + ": " + Bytes(memory.total()) + " of the peak of " + Bytes(peak_bytes);
}

}  // namespace trainwright
