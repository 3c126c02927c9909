/// Which of the processes of a run this one is, as what started them says in the environment: torchrun,
/// Slurm, Open MPI and other launchers of MPI programs, or `train --nproc`.
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
  std::string launcher;                ///< by name, for messages; kOwnLauncher and others
  /// Which of its launcher's runs it is one of, so that ranks of two that meet at one port know each other:
  /// "slurm 17.3". Empty: the launcher does not say.
  std::string launch;
  bool operator==(const RankPlace&) const = default;
};

/// Of the ranks that RunLocalRanks starts (lib/launch/local_ranks.h).
inline constexpr char kOwnLauncher[] = "train --nproc";
/// It says in this variable that it started them; of rank 0 it is the descriptor of the socket at
/// which the ranks find each other, of others "-".
inline constexpr char kLocalStoreVariable[] = "TRAINWRIGHT_LOCAL_STORE";

/// Looks up a variable; null: it is not set.
using EnvironmentLookup = std::function<const char*(const char* name)>;

/// The first of these that there is: RunLocalRanks; torchrun, or RANK and WORLD_SIZE by whatever else; Open
/// MPI; PMI (MPICH, Intel MPI); a step of Slurm, where a batch script itself is none.
///
/// Ranks find each other at MASTER_ADDR and MASTER_PORT. Without the first it is 127.0.0.1 where all ranks
/// are on this machine, else the first host of Slurm's step, or of the job that an MPI launcher runs in.
/// Without the second it is 10000 + (16 j + s) mod 20000 of Slurm's job j and step s (0 of another launcher);
/// of Open MPI 10000 + CRC-32C(PMIX_NAMESPACE) mod 20000; else 29500.
/// \returns nullopt where nothing says that there are other ranks
/// \throws Error{kUsage} on variables that contradict each other or lack one that is needed, naming it
std::optional<RankPlace> RankPlaceFromEnvironment(const EnvironmentLookup& lookup);
/// Of this process.
std::optional<RankPlace> RankPlaceFromEnvironment();
/// The same, and what this process starts is no rank: the variables go, and the socket closes when a program
/// is started. Where MPICH's or Intel MPI's launcher has started all ranks on this machine, whose variables
/// do not say which of its runs it is, the launcher's process does. For mains, before other threads run.
std::optional<RankPlace> TakeRankPlace();

/// The process that made a pair of sockets, one of which this is: of the two ends of PMI_FD the launcher's.
/// \returns nullopt where it is no such socket, or the process is not seen from here
std::optional<int64_t> MakerOfSocket(int fd);

/// How often what started this process has started it before, also where it is alone: restarts of torchrun
/// and of Slurm's job.
/// \throws Error{kUsage}
int64_t RestartsFromEnvironment(const EnvironmentLookup& lookup);
int64_t RestartsFromEnvironment();

}  // namespace trainwright
