/// Greedy continuation of a prompt.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/model/language_model.h"

namespace trainwright {

enum class FinishReason { kEos, kLength, kContext };
std::string FinishReasonName(FinishReason reason);  ///< "eos", "length", "context"

struct Generation {
  std::vector<uint32_t> ids;  ///< generated ones, without the prompt and without the end token
  FinishReason finish = FinishReason::kLength;
};

/// Appends the most probable token (the smallest id among equals) until it is `eos_id` (kNoId: never),
/// `max_tokens` were made or the model's context is full. \param prompt at least one id \throws
/// Error{kBadInput} when the prompt fills the context or holds foreign ids, Error{kNonFinite},
///         Error{kInterrupted, kTerminated}
Generation GenerateGreedily(LanguageModel* model, const std::vector<uint32_t>& prompt, int64_t max_tokens,
                            uint32_t eos_id);

}  // namespace trainwright
