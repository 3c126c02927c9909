/// What a user can change so that a run takes less memory.
#pragma once

#include <string>
#include <vector>

namespace trainwright {

/// In the order in which they are advised: first those that leave the result as it is. Some are options of
/// one objective: see ObjectiveDescription::memory_levers.
enum class MemoryLever {
  kAutoOom,
  kRecomputation,
  kOffloadActivations,
  kSeparateTexts,
  kSeparateRows,
  kSplitTexts,
  kTile,
  kBf16States,
  kOffloadGradients,
  kQuantizedWeights,
  kTbptt,
  kBatch,
  kSequence,
  kTextLengths,
  kRepresentations,
  kNoSnapshot,
  kLoader,
  kModel
};

/// The flags: "--offload gradients", "a lower --seq in a new run". A resumed run takes those that do not say
/// so.
const char* MemoryLeverText(MemoryLever lever);

/// "--offload gradients, a lower --tile-mb"; in the order of MemoryLever, each once.
std::string JoinMemoryLevers(std::vector<MemoryLever> levers);

}  // namespace trainwright
