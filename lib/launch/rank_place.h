/// Which of the processes of a run this one is, as what started them says in the environment: torchrun, Slurm,
/// Open MPI and other launchers of MPI programs, or `train --nproc`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace trainwright {

struct RankPlace {
  int64_t rank = 0, ranks = 1;              ///< of the whole world
  int64_t local_rank = 0, local_ranks = 1;  ///< on this machine
  std::string store_host;                   ///< where ranks find each other
  int store_port = 0;
  bool store_is_served = false;        ///< by the launcher; else rank 0 serves it
  std::optional<int> store_listen_fd;  ///< rank 0: a socket that listens there already
  std::string store_prefix;            ///< of all keys, so that a restart finds none of those before
  int64_t restarts = 0;                ///< of the whole world so far, by a launcher that does that
  std::string launcher;                ///< by name, for messages
};

/// Looks up a variable; null: it is not set.
using EnvironmentLookup = std::function<const char*(const char* name)>;

/// \returns nullopt where nothing says that there are other ranks
/// \throws Error{kUsage} on variables that contradict each other or lack one that is needed, naming it
std::optional<RankPlace> RankPlaceFromEnvironment(const EnvironmentLookup& lookup);
/// Of this process.
std::optional<RankPlace> RankPlaceFromEnvironment();

}  // namespace trainwright
