#include "lib/spec/memory_parts.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/units.h"

namespace trainwright {
namespace {

/// In the order of MemoryGroup.
constexpr std::array kGroupNames = {"params", "grads",    "optimizer", "activations",
                                    "loader", "snapshot", "runtime",   "heap"};

using Groups = std::array<std::pair<const char*, int64_t>, kGroupNames.size()>;

Groups GroupsOf(const MemoryParts& memory) {
  Groups groups;
  for (size_t i = 0; i < groups.size(); ++i) groups[i] = {kGroupNames[i], 0};
  for (const MemoryPart& part : AllMemoryParts()) {
    groups[static_cast<size_t>(part.group)].second += memory.*part.size_bytes;
  }
  return groups;
}

/// These and what makes the passes of a micro-batch smaller.
std::vector<MemoryLever> WithPasses(std::vector<MemoryLever> levers) {
  using Lever = MemoryLever;
  for (const Lever lever : {Lever::kSeparateTexts, Lever::kSeparateRows, Lever::kSplitTexts, Lever::kTbptt,
                            Lever::kBatch, Lever::kSequence, Lever::kTextLengths}) {
    levers.push_back(lever);
  }
  return levers;
}

}  // namespace

int64_t ResidentFreeHeap(const MemoryParts& others, int64_t free_heap_bytes, int64_t peak_bytes) {
  return std::clamp<int64_t>(peak_bytes - others.total(), 0, free_heap_bytes);
}

std::span<const MemoryPart> AllMemoryParts() {
  using Parts = MemoryParts;
  using Group = MemoryGroup;
  using Lever = MemoryLever;
  static const std::vector<MemoryPart> parts = {
      {"parameters", "parameters", Group::kParams, &Parts::parameters, {Lever::kModel}},
      {"gradients", "gradients", Group::kGrads, &Parts::gradients, {Lever::kOffloadGradients, Lever::kModel}},
      {"optimizer",
       "optimizer's moments",
       Group::kOptimizer,
       &Parts::optimizer,
       {Lever::kBf16States, Lever::kModel}},
      {"compute_copy", "compute copy of the weights", Group::kParams, &Parts::compute_copy, {Lever::kModel}},
      {"frozen", "frozen weights", Group::kParams, &Parts::frozen, {Lever::kQuantizedWeights, Lever::kModel}},
      {"activations", "activations", Group::kActivations, &Parts::activations,
       WithPasses({Lever::kAutoOom, Lever::kRecomputation, Lever::kOffloadActivations})},
      {"logits", "slice of logits", Group::kActivations, &Parts::logits, WithPasses({Lever::kAutoOom})},
      {"representations",
       "vectors of a step's texts",
       Group::kActivations,
       &Parts::representations,
       {Lever::kTile, Lever::kRepresentations}},
      {"exchange", "gradients of leaves and between ranks", Group::kGrads, &Parts::exchange, {Lever::kModel}},
      {"attention", "attention's scratch", Group::kActivations, &Parts::attention,
       WithPasses({Lever::kAutoOom})},
      {"graphs", "graphs of passes", Group::kActivations, &Parts::graphs, WithPasses({Lever::kAutoOom})},
      {"snapshot",
       "copy that checkpoints are written from",
       Group::kSnapshot,
       &Parts::snapshot,
       {Lever::kNoSnapshot},
       /*of_host=*/true},
      {"offloaded", "offloaded to the host", Group::kRuntime, &Parts::offloaded, {}, /*of_host=*/true},
      {"loader", "loader", Group::kLoader, &Parts::loader, {Lever::kLoader}, /*of_host=*/true},
      {"products", "operands of GEMMs, allocator", Group::kHeap, &Parts::products,
       WithPasses({Lever::kAutoOom})},
      {"process", "process and libraries", Group::kRuntime, &Parts::process, {}, /*of_host=*/true},
  };
  return parts;
}

const MemoryPart& LargestPart(const MemoryParts& memory) {
  const std::span<const MemoryPart> parts = AllMemoryParts();
  return *std::max_element(parts.begin(), parts.end(), [&](const MemoryPart& a, const MemoryPart& b) {
    const auto size = [&](const MemoryPart& part) {
      return part.levers.empty() ? int64_t{-1} : memory.*part.size_bytes;
    };
    return size(a) < size(b);
  });
}

nlohmann::ordered_json EncodeMemoryParts(const MemoryParts& memory) {
  nlohmann::ordered_json json;
  for (const MemoryPart& part : AllMemoryParts()) json[part.name] = memory.*part.size_bytes;
  return json;
}

nlohmann::ordered_json EncodeMemory(const MemoryParts& memory, int64_t peak_bytes) {
  nlohmann::ordered_json json;
  for (const auto& [name, size] : GroupsOf(memory)) json[name] = size;
  json["total"] = memory.total();
  json["peak"] = peak_bytes;
  return json;
}

std::string FormatMemory(const MemoryParts& memory, int64_t peak_bytes) {
  const auto bytes = [](int64_t size) { return FormatBytes(static_cast<uint64_t>(size)); };
  Groups groups = GroupsOf(memory);
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [name, size] : groups) {
    if (size > 0) text += (text.empty() ? "" : ", ") + std::string(name) + " " + bytes(size);
  }
  return text + ": " + bytes(memory.total()) + " of the peak of " + bytes(peak_bytes);
}

}  // namespace trainwright
