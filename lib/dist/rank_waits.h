/// How long the ranks of a run wait for each other.
///
/// Ranks work by themselves between points at which each needs all others. Who waits least at these is the
/// one that the others wait for.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/dist/world.h"

namespace trainwright {

/// In the same span of time. A value.
struct RankWaits {
  std::vector<double> waits_s;  ///< of each rank; empty where there is one

  /// \returns false where there is nothing to report
  explicit operator bool() const { return !waits_s.empty(); }
  void Add(const RankWaits& more);
  /// The rank that waits least, the first of several. \pre there are ranks
  int64_t slowest() const;
  /// The part of all ranks' time that goes into waiting, from 0 to 1. \pre there are ranks
  /// \param time_s of each rank
  double ShareOf(double time_s) const;
};

/// Reports to the others how long a rank has waited, by what they agree on anyway.
/// \param wait_s of this rank
/// \returns for World::Agree, as many in all ranks; none where there is one rank
std::vector<int64_t> WaitAnswers(const World& world, double wait_s);
/// \param agreed on these answers
RankWaits WaitsOf(const std::vector<int64_t>& agreed);

}  // namespace trainwright
