#include "lib/spec/memory_lever.h"

#include <algorithm>

namespace trainwright {

const char* MemoryLeverText(MemoryLever lever) {
  switch (lever) {
    case MemoryLever::kAutoOom:
      return "--auto-oom";
    case MemoryLever::kRecomputation:
      return "--checkpoint-activations full";
    case MemoryLever::kOffloadActivations:
      return "--offload activations";
    case MemoryLever::kSeparateTexts:
      return "--no-emb-gas off";
    case MemoryLever::kSeparateRows:
      return "--no-gen-gas off";
    case MemoryLever::kSplitTexts:
      return "--split-emb full";
    case MemoryLever::kTile:
      return "a lower --tile-mb";
    case MemoryLever::kBf16States:
      return "--optimizer-states bf16 in a new run";
    case MemoryLever::kOffloadGradients:
      return "--offload gradients";
    case MemoryLever::kQuantizedWeights:
      return "--quant nf4 in a new run";
    case MemoryLever::kTbptt:
      return "--tbptt in a new run";
    case MemoryLever::kBatch:
      return "a lower --batch (raising --accum as much)";
    case MemoryLever::kSequence:
      return "a lower --seq in a new run";
    case MemoryLever::kTextLengths:
      return "a lower --query-max-len, --passage-max-len or --generative-max-len in a new run";
    case MemoryLever::kRepresentations:
      return "a lower --accum or --projection or --negatives rank in a new run";
    case MemoryLever::kNoSnapshot:
      return "--async-save off";
    case MemoryLever::kLoader:
      return "fewer --workers or a lower --prefetch";
    case MemoryLever::kModel:
      return "a smaller --model";
  }
  return "";
}

std::string JoinMemoryLevers(std::vector<MemoryLever> levers) {
  std::sort(levers.begin(), levers.end());
  levers.erase(std::unique(levers.begin(), levers.end()), levers.end());
  std::string text;
  for (const MemoryLever lever : levers)
    text += (text.empty() ? "" : ", ") + std::string(MemoryLeverText(lever));
  return text;
}

}  // namespace trainwright
