/// How an optimizer's moments are stored. Torch-free.
#pragma once

#include <cstdint>
#include <string>

namespace trainwright {

enum class OptimizerStates { kFp32, kBf16 };

/// "fp32" or "bf16".
std::string OptimizerStatesName(OptimizerStates states);
/// \throws Error{kUsage} naming `flag`
OptimizerStates ParseOptimizerStates(const std::string& text, const std::string& flag);
/// Bytes of the two moments of this many elements.
int64_t OptimizerStateBytes(OptimizerStates states, int64_t elements);

}  // namespace trainwright
