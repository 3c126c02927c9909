/// Continuing prompts, many at a time.
///
/// A fixed number of sequences is decoded together; one that ends makes room for the next sample, and samples
/// of one prompt share its computation. What a sample is depends on the seed, its prompt's and its own
/// number, not on when it ran: random numbers are those of (seed, prompt, sample, token). Logits computed in
/// other company can differ in the last bits, and with them a choice between near equals; with
/// `batch_invariant` they do not.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/eval/sampling.h"
#include "lib/model/context_cache.h"
#include "lib/model/language_model.h"

namespace trainwright {

enum class FinishReason { kEos, kLength, kContext, kStop };
std::string FinishReasonName(FinishReason reason);  ///< "eos", "length", "context", "stop"

struct GenerationOptions {
  SamplingOptions sampling;
  int64_t max_tokens = 128;
  int64_t samples = 1;                          ///< of each prompt
  int64_t first_sample = 0, sample_stride = 1;  ///< their numbers: the i-th is first + i * stride
  int64_t batch = 16;                           ///< sequences decoded together
  bool batch_invariant = false;
  uint64_t seed = 0;
  std::vector<uint32_t> ends;  ///< ids that end a sample, and are not part of it
};

/// \param index number of the prompt: what its samples' random numbers depend on
struct TokenizedPrompt {
  uint64_t index = 0;
  std::vector<uint32_t> ids;  ///< at least one; with the contexts' at most the model's context
  /// What stands before the ids and is not computed.
  std::vector<std::shared_ptr<const CachedContext>> contexts = {};
};

struct Generation {
  uint64_t prompt = 0;  ///< its index
  int64_t sample = 0;
  std::vector<uint32_t> ids;  ///< generated ones, without the prompt and without the id that ended it
  FinishReason finish = FinishReason::kLength;
};

struct GenerationCounts {
  uint64_t prompts = 0, samples = 0, tokens = 0, prompt_tokens = 0;
  uint64_t context_tokens = 0;  ///< of contexts, which were not computed
  uint64_t prefills =
      0;  ///< prompts computed: once each, however many samples, unless memory was needed meanwhile
  uint64_t steps = 0;  ///< of the sequences decoded together
};

/// Gives the next prompt; false when there is none.
using NextPrompt = std::function<bool(TokenizedPrompt*)>;
/// Takes a sample. They come in order: all of the first prompt, then all of the second.
using TakeGeneration = std::function<void(Generation&&)>;
/// Whether the ids generated so far end here: called after each.
using StopCheck = std::function<bool(const std::vector<uint32_t>& ids)>;

/// Holds prompts and finished samples in memory only as far as the order of the output makes it.
/// \param stop may be empty
/// \throws Error{kBadInput} on a prompt longer than the context or with foreign ids, or on contexts of
///         another model; Error{kUsage} on contexts of a model that cannot take any, Error{kNonFinite},
///         Error{kInterrupted, kTerminated}; what `next` and `take` throw
GenerationCounts Generate(LanguageModel* model, const GenerationOptions& options, const NextPrompt& next,
                          const StopCheck& stop, const TakeGeneration& take);

}  // namespace trainwright
