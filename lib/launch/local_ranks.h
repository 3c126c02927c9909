/// The ranks of a run as processes of this machine that one process starts and waits for: `train --nproc`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainwright {

struct LocalRanksOptions {
  int64_t ranks = 1;
  std::vector<std::string> argv;  ///< of each, its name first
  /// That the other ranks have to end by themselves once one has failed; then they are asked to (SIGTERM),
  /// and as long after that, at most 10 s, killed.
  double grace_s = 60;
  std::string program = {};  ///< its path; empty: this program
};

/// Starts the ranks and waits for all of them. They have the environment of this process and the variables
/// that RankPlaceFromEnvironment reads; the socket at which they find each other listens before they start,
/// so that no two runs meet at one port. Rank 0 has the standard input, the others an empty one.
///
/// SIGINT, SIGTERM, SIGHUP and SIGQUIT that this process gets are passed on to each rank once: each is a
/// process group of its own, which a terminal sends none. SIGTSTP stops and SIGCONT continues all. No rank
/// outlives this process, however it ends. For mains, before other threads run.
/// \returns 0 where all ranks did; else the exit status of the first that failed by itself, where one of
///     another status than 4 (of which another rank may be the cause) comes before those of 4. 128 + n where
///     signal n killed it
/// \throws Error{kIo} where a process or a socket is not available; Error{kInterrupted, kTerminated} where a
///     signal came before; no rank runs then
int RunLocalRanks(const LocalRanksOptions& options);

}  // namespace trainwright
