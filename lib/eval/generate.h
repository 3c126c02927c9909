/// Continuing prompts, many at a time.
///
/// Up to a fixed number of sequences is decoded together; one that ends makes room for the next sample, and
/// samples of one prompt share its computation. Memory is for as many sequences as there are samples to come,
/// up to that number. What a sample is depends on the seed, its prompt's and its own number, not on when it
/// ran: random numbers are those of (seed, prompt, sample, token). Logits computed in other company can
/// differ in the last bits, and with them a choice between near equals; with `batch_invariant` they do not.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/eval/log_probabilities.h"
#include "lib/eval/sampling.h"
#include "lib/model/context_cache.h"
#include "lib/model/language_model.h"
#include "lib/model/recurrent_state.h"

namespace trainwright {

enum class FinishReason { kEos, kLength, kContext, kStop };
std::string FinishReasonName(FinishReason reason);  ///< "eos", "length", "context", "stop"

/// Where a sequence is when its state is taken. A sample's is after its last id, without the one that ended
/// it; of several that ended it together, all but the last are in the state.
enum class StateAfter : uint8_t { kPrompt, kSample };

struct GenerationOptions {
  SamplingOptions sampling;
  int64_t max_tokens = 128;
  int64_t samples = 1;                          ///< of each prompt
  int64_t first_sample = 0, sample_stride = 1;  ///< their numbers: the i-th is first + i * stride
  int64_t batch = 16;                           ///< sequences decoded together at most
  bool batch_invariant = false;
  /// Compute of a prompt only what follows the tokens that it has in common with what its sequence held
  /// before, as in a conversation; not of one with contexts or a state.
  bool keep_prefix = false;
  uint64_t seed = 0;
  std::vector<uint32_t> ends;  ///< ids that end a sample, and are not part of it
  /// Only ids below it are chosen, as a tokenizer with fewer ids than the model has them; 0: all.
  int64_t chosen_ids = 0;
  /// Where set, takes the state after each prompt, as it is computed, or after each sample, as it ends.
  std::function<void(const RecurrentState&)> take_state = {};
  StateAfter state_after = StateAfter::kPrompt;
  /// This many of the most probable tokens' log probabilities besides that of each token chosen; absent: none
  /// of both.
  std::optional<int64_t> log_probabilities = {};
  /// Where set, sees each token as it is taken into a sample: of one sequence, for those who watch it.
  std::function<void(uint32_t)> watch = {};
};

struct SampleEnd {
  FinishReason reason = FinishReason::kStop;
  size_t ids = 0;  ///< that remain of the sample: those after them ended it
};
/// Looks whether the ids of one sample end it: called after each, with all that there are.
using FindEnd = std::function<std::optional<SampleEnd>(const std::vector<uint32_t>& ids)>;
/// Makes what looks at the next sample of a prompt.
using StopCheck = std::function<FindEnd(std::span<const int64_t> prompt)>;

/// What ends the samples of a prompt.
struct PromptEnds {
  std::vector<uint32_t> ids;  ///< as GenerationOptions::ends
  StopCheck stop;             ///< may be empty
};

/// \param index number of the prompt: what its samples' random numbers depend on
struct TokenizedPrompt {
  uint64_t index = 0;
  /// At least one, unless there is a state; with the contexts' at most the model's context, where it has one.
  std::vector<uint32_t> ids;
  /// What comes before the ids and is not computed.
  std::vector<std::shared_ptr<const CachedContext>> contexts = {};
  /// Of a sequence that the ids continue, which is not computed either; null: they begin one.
  std::shared_ptr<const RecurrentState> state = {};
  /// In place of what ends the samples of all others; null: as theirs.
  std::shared_ptr<const PromptEnds> ends = {};
};

struct Generation {
  uint64_t prompt = 0;  ///< its index
  int64_t sample = 0;
  std::vector<uint32_t> ids;  ///< generated ones, without the prompt and without the id that ended it
  FinishReason finish = FinishReason::kLength;
  std::vector<ChosenLogProbabilities> log_probabilities = {};  ///< of each id, where asked for
};

struct GenerationCounts {
  uint64_t prompts = 0, samples = 0, tokens = 0, prompt_tokens = 0;
  uint64_t context_tokens = 0;  ///< of contexts and states, which were not computed
  uint64_t kept_tokens = 0;     ///< of prompts, which were not computed again: see keep_prefix
  uint64_t prefills =
      0;  ///< prompts computed: once each, however many samples, unless memory was needed meanwhile
  uint64_t steps = 0;  ///< of the sequences decoded together
};

/// Gives the next prompt; false when there is none.
using NextPrompt = std::function<bool(TokenizedPrompt*)>;
/// Takes a sample. They come in order: all of the first prompt, then all of the second.
using TakeGeneration = std::function<void(Generation&&)>;

/// Holds prompts and finished samples in memory only as far as the order of the output makes it.
/// \param stop may be empty
/// \throws Error{kBadInput} on a prompt longer than the context or with foreign ids, or on contexts of
///         another model; Error{kUsage} on contexts or states of a model that cannot take or give any,
///         Error{kNonFinite}, Error{kInterrupted, kTerminated}; what `next`, `take` and `take_state` throw
GenerationCounts Generate(LanguageModel* model, const GenerationOptions& options, const NextPrompt& next,
                          const StopCheck& stop, const TakeGeneration& take);

}  // namespace trainwright
