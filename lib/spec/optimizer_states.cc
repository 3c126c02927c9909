#include "lib/spec/optimizer_states.h"

#include "lib/base/error.h"

namespace trainwright {

std::string OptimizerStatesName(OptimizerStates states) {
  return states == OptimizerStates::kBf16 ? "bf16" : "fp32";
}

OptimizerStates ParseOptimizerStates(const std::string& text, const std::string& flag) {
  for (const OptimizerStates states : {OptimizerStates::kFp32, OptimizerStates::kBf16}) {
    if (OptimizerStatesName(states) == text) return states;
  }
  throw Error(ErrorCode::kUsage, flag, "unknown '" + text + "'", "", "use fp32 or bf16");
}

int64_t OptimizerStateBytes(OptimizerStates states, int64_t elements) {
  return 2 * elements * (states == OptimizerStates::kBf16 ? 2 : 4);
}

}  // namespace trainwright
