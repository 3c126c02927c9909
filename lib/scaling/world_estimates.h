/// A run on numbers of ranks that are not there, estimated: bytes, messages, time and memory of a rank,
/// for each way of sharding, and whether it fits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/scaling/link.h"
#include "lib/scaling/rank_memory.h"
#include "lib/scaling/rank_plan.h"
#include "lib/scaling/step_estimate.h"
#include "lib/scaling/world_fit.h"

namespace trainwright {

struct WorldRequest {
  std::vector<int64_t> worlds = {};  ///< numbers of ranks, each at least 1
  Link link = {};
  RankPlan plan = {};           ///< as asked for; its ranks are those of `worlds`
  PassesChoice passes = {};     ///< as asked for
  StepCosts costs = {};         ///< of these passes
  int64_t batch_tokens = 0;     ///< of a micro-batch
  std::string samples = {};     ///< how long they are: part of a sentence
  std::string computing = {};   ///< where the costs come from: a sentence
  std::string device = {};      ///< what each rank has, for people
  bool counts_host = false;     ///< as of FitRequest
  bool knows_adapters = false;  ///< as of FitRequest
  int64_t memory_bytes = 0;     ///< as of FitRequest
  MemoryOfPasses memory_of = {};
  VectorsOfRank vectors_of = {};  ///< as of FitRequest
  std::string length_flags = {};  ///< as of FitRequest
};

/// One way of sharding.
struct WorldRow {
  RankPlan plan = {};
  StepEstimate step = {};
  RankMemory memory = {};
  int64_t memory_bytes = 0;  ///< of `memory`, what counts
  double tokens_per_s = 0;   ///< of all ranks; 0: not known
};

struct WorldEstimate {
  int64_t ranks = 1;
  std::vector<WorldRow> rows = {};  ///< by sharding
  size_t asked = 0;                 ///< the row that was asked for
  Fit fit = {};                     ///< of it
};

struct WorldEstimates {
  std::vector<WorldEstimate> worlds;
  std::vector<std::string> assumptions;  ///< all of them, a sentence each
  /// Whether what was asked for fits on all these numbers of ranks, or nobody knows.
  bool fits() const;
};

WorldEstimates EstimateWorlds(const WorldRequest& request);

}  // namespace trainwright
