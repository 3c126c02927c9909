/// Continuing prompts by several ranks, whose samples come together in order.
///
/// Each rank goes through all prompts and continues its own: of prompt i it is rank i modulo their number;
/// or, where there are few prompts of many samples, sample i of each. What the ranks made comes together in
/// rounds of the same prompts, so that the writer holds no more of it than a round.
#pragma once

#include <cstdint>

#include "lib/dist/world.h"
#include "lib/eval/generate.h"

namespace trainwright {

enum class RankDivision : uint8_t {
  kPrompts,
  kSamples,  ///< of every prompt, which each rank computes
};

/// As Generate, on all ranks. Samples of several ranks are those of one where they do not depend on the
/// company that they are computed in.
/// \param options with batch_invariant where there are several ranks
/// \param next gives all prompts on every rank
/// \param take called on the writer, with the samples of all
/// \returns the counts of all ranks together; prompts count once, a prefill for each rank that computes it
/// \throws as Generate, once all ranks know of it; as SharedRounds::Meet
GenerationCounts GenerateOnRanks(World* world, RankDivision division, LanguageModel* model,
                                 const GenerationOptions& options, const NextPrompt& next,
                                 const StopCheck& stop, const TakeGeneration& take);

}  // namespace trainwright
