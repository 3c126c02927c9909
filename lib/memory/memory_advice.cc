#include "lib/memory/memory_advice.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/base/units.h"
#include "lib/spec/family.h"

namespace trainwright {
namespace {

constexpr size_t kTensorsNamed = 2;

/// What parts are for a user whose run ended.
enum Subject { kState, kPasses, kSnapshot, kLoader, kSubjects };

Subject SubjectOf(MemoryGroup group) {
  switch (group) {
    case MemoryGroup::kParams:
    case MemoryGroup::kGrads:
    case MemoryGroup::kOptimizer:
      return kState;
    case MemoryGroup::kActivations:
    case MemoryGroup::kHeap:
      return kPasses;
    case MemoryGroup::kSnapshot:
      return kSnapshot;
    case MemoryGroup::kLoader:
      return kLoader;
    case MemoryGroup::kRuntime:
      break;
  }
  return kSubjects;
}

std::string Bytes(int64_t size) {
  return FormatBytes(static_cast<uint64_t>(size));
}

std::string LargestTensors(const ModelFamilies& families, const MemoryRequest& request) {
  const auto shapes = ShapesOf(families, request);
  std::vector<const Parameter*> sorted;
  for (const Parameter& parameter : shapes->parameters().all()) sorted.push_back(&parameter);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Parameter* a, const Parameter* b) { return a->size > b->size; });
  std::string text;
  for (size_t i = 0; i < std::min(kTensorsNamed, sorted.size()); ++i) {
    text += (i == 0 ? "" : ", ") + sorted[i]->name + " " + nlohmann::json(sorted[i]->shape).dump();
  }
  return text;
}

std::string SubjectText(const ModelFamilies& families, Subject subject, int64_t size_bytes,
                        const MemoryRequest& request) {
  switch (subject) {
    case kState:
      return "weights with gradients and moments, " + Bytes(size_bytes) + ", the largest " +
             LargestTensors(families, request);
    case kPasses:
      return "activations, " + Bytes(size_bytes);
    case kSnapshot:
      return "the copy for checkpoints, " + Bytes(size_bytes);
    case kLoader:
      return "the loader, " + Bytes(size_bytes);
    case kSubjects:
      break;
  }
  return "";
}

/// Whether a lever is none of this objective's options.
bool IsAnothers(MemoryLever lever, const std::vector<MemoryLever>& objective_levers) {
  const auto has = [&](MemoryLever own) {
    return std::find(objective_levers.begin(), objective_levers.end(), own) != objective_levers.end();
  };
  switch (lever) {
    case MemoryLever::kTbptt:
    case MemoryLever::kSequence:
      return has(MemoryLever::kTextLengths);
    case MemoryLever::kSeparateTexts:
    case MemoryLever::kSeparateRows:
    case MemoryLever::kSplitTexts:
    case MemoryLever::kTile:
    case MemoryLever::kTextLengths:
    case MemoryLever::kRepresentations:
      return !has(lever);
    default:
      return false;
  }
}

}  // namespace

std::vector<MemoryLever> LeversLeft(const MemoryRequest& request, bool auto_oom,
                                    const std::vector<MemoryLever>& levers) {
  const bool whole_gradients = request.ranks > 1 || request.exchange.exact_leaves > 0;
  const FamilyDescription* family = request.model.family;
  const bool carries_state = family != nullptr && family->carries_state();
  std::vector<MemoryLever> left;
  for (const MemoryLever lever : levers) {
    const bool taken =
        IsAnothers(lever, request.objective_levers) ||
        (lever == MemoryLever::kAutoOom && (auto_oom || request.exchange.exact_leaves > 0)) ||
        (lever == MemoryLever::kRecomputation && request.checkpointing == ActivationCheckpointing::kFull) ||
        (lever == MemoryLever::kOffloadActivations && request.offload.activations) ||
        (lever == MemoryLever::kOffloadGradients && (request.offload.gradients || whole_gradients)) ||
        (lever == MemoryLever::kBf16States && request.optimizer.states == OptimizerStates::kBf16) ||
        (lever == MemoryLever::kQuantizedWeights && request.tuning.frozen_format == WeightFormat::kNf4) ||
        (lever == MemoryLever::kTbptt && (request.tbptt > 0 || !carries_state));
    if (!taken) left.push_back(lever);
  }
  return left;
}

std::string MemoryAdvice(const ModelFamilies& families, const MemoryParts& memory,
                         const MemoryRequest& request, bool auto_oom) {
  struct Advice {
    Subject subject;
    int64_t size_bytes = 0;
    std::vector<MemoryLever> levers;
  };
  std::vector<Advice> advice;
  for (int subject = 0; subject < kSubjects; ++subject) advice.push_back({static_cast<Subject>(subject)});
  for (const MemoryPart& part : AllMemoryParts()) {
    const Subject subject = SubjectOf(part.group);
    if (subject == kSubjects || memory.*part.size_bytes == 0) continue;
    advice[subject].size_bytes += memory.*part.size_bytes;
    for (const MemoryLever lever : LeversLeft(request, auto_oom, part.levers)) {
      advice[subject].levers.push_back(lever);
    }
  }
  std::stable_sort(advice.begin(), advice.end(),
                   [](const Advice& a, const Advice& b) { return a.size_bytes > b.size_bytes; });
  std::string text;
  for (const Advice& part : advice) {
    if (part.size_bytes == 0) continue;
    text += (text.empty() ? "" : "; ") + SubjectText(families, part.subject, part.size_bytes, request) +
            ": " + JoinMemoryLevers(part.levers);
  }
  return text;
}

}  // namespace trainwright
