/// What of a run's state each of several ranks keeps only its part of. Torch-free.
#pragma once

#include <cstdint>
#include <string>

namespace trainwright {

/// \source Rajbhandari et al. 2020, ZeRO, arXiv:1910.02054
enum class Sharding {
  kNone,       ///< nothing: data parallel
  kOptimizer,  ///< stage 1: the optimizer's moments, and masters beside a copy in reduced precision
  kGradients,  ///< stage 2: and the gradients
};

/// What stage 2 does where a rank has several micro-batches of a step.
enum class ZeroAccumulation {
  kReduce,  ///< gives the gradients of each away
  kKeep,    ///< adds them up in a whole buffer
};

/// Whether the gradients of a micro-batch leave a rank before those of its next one come.
/// \param micro_batches of a step, of a rank
/// \param exact whether bits are the same for each number of ranks: then those of several micro-batches are
///     added up in one buffer
bool GivesGradientsAway(Sharding sharding, ZeroAccumulation accumulation, int64_t micro_batches, bool exact);

/// "reduce" or "keep".
std::string ZeroAccumulationName(ZeroAccumulation accumulation);
/// \throws Error{kUsage} naming `flag`
ZeroAccumulation ParseZeroAccumulation(const std::string& text, const std::string& flag);

}  // namespace trainwright
