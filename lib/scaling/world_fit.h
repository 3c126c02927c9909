/// Whether a rank's part of a run fits into its memory, and where it does not, what would: other options,
/// more ranks, or ways of dividing a model that the suite does not have.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lib/scaling/rank_memory.h"
#include "lib/scaling/rank_plan.h"
#include "lib/spec/activation_checkpointing.h"
#include "lib/spec/memory_parts.h"

namespace trainwright {

/// What the memory of the passes depends on.
struct PassesChoice {
  int64_t batch = 1;  ///< samples of a micro-batch
  int64_t sequence_tokens = 0;
  ActivationCheckpointing checkpointing = ActivationCheckpointing::kNo;
  /// Low-rank adapters beside matrices in 4 bits in place of what the run trains.
  bool adapters = false;
};

/// Memory of the run in one process with these passes.
using MemoryOfPasses = std::function<MemoryParts(const PassesChoice& choice)>;
/// Bytes of the vectors of a step's texts, as in MemoryParts::representations, on this many ranks.
using VectorsOfRank = std::function<int64_t(int64_t ranks, const PassesChoice& choice)>;

enum class FitVerdict {
  kUnknown,               ///< how much memory there is
  kFits,                  ///< as asked for
  kFitsOtherwise,         ///< with other options on as many ranks
  kNeedsMoreRanks,        ///< with all that the options can give, on more ranks
  kNeedsContextParallel,  ///< one sample's passes do not fit: only ranks that share a sample could
  kNeedsModelParallel,    ///< the weights that each rank keeps whole do not: only ranks that share them could
};

/// "fits", "needs more ranks": for records of a dry run.
const char* FitVerdictName(FitVerdict verdict);

struct FitRequest {
  int64_t memory_bytes = 0;  ///< of a rank; 0: not known
  bool counts_host = false;  ///< whether what always lies in the host's memory counts, too
  RankPlan plan = {};
  PassesChoice passes = {};
  bool knows_adapters =
      false;  ///< whether the family takes adapters, and the run does not train some already
  MemoryOfPasses memory_of = {};
  VectorsOfRank vectors_of = {};  ///< empty: as memory_of says
  /// Options that say how long texts are where --seq does not: "--a and --b".
  std::string length_flags = {};
};

struct Fit {
  FitVerdict verdict = FitVerdict::kUnknown;
  int64_t needed_bytes = 0;  ///< as asked for
  std::string reason = {};   ///< a sentence where it does not fit
  std::string nearest = {};  ///< what comes nearest: options, or a number of ranks
};

/// Of the rank that has most.
/// \param alone memory_of these passes
RankMemory MemoryOfRank(const MemoryParts& alone, const RankPlan& plan, const PassesChoice& passes,
                        const VectorsOfRank& vectors_of);

/// Looks in this order: what was asked for; more sharding; full recomputation; micro-batches of one sample;
/// more ranks; shorter samples. Calls memory_of once for each choice of passes.
Fit FindFit(const FitRequest& request);

}  // namespace trainwright
