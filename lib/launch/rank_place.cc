#include "lib/launch/rank_place.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"
#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr int64_t kMostRanks = 1 << 20;
constexpr char kLoopback[] = "127.0.0.1";
// Below the ports that systems give to outgoing connections.
constexpr int64_t kFirstPort = 10000, kPorts = 20000, kDefaultPort = 29500, kMostPort = 65535;
constexpr int64_t kStepsOfJob = 16;
constexpr char kPmiLauncher[] = "pmi";

[[noreturn]] void Refuse(const std::string& variable, const std::string& problem,
                         const std::string& hint = "") {
  throw Error(ErrorCode::kUsage, variable, problem, "in the environment", hint);
}

/// The variables, read as what they must be. An empty one counts as not set.
class Environment {
 public:
  explicit Environment(const EnvironmentLookup& lookup) : lookup_(lookup) {}

  std::string Text(const char* name) const {
    const char* const value = lookup_(name);
    return value == nullptr ? "" : value;
  }
  bool Has(const char* name) const { return !Text(name).empty(); }
  /// nullopt: not set.
  std::optional<int64_t> Number(const char* name, int64_t least, int64_t most) const {
    const std::string text = Text(name);
    if (text.empty()) return std::nullopt;
    int64_t number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (status != std::errc() || end != text.data() + text.size() || number < least || number > most) {
      Refuse(name, "'" + text + "' is no whole number from " + std::to_string(least) + " to " +
                       std::to_string(most));
    }
    return number;
  }

 private:
  const EnvironmentLookup& lookup_;
};

/// The variables by which a launcher counts.
struct CountNames {
  const char *rank, *ranks, *local_rank, *local_ranks;
};
constexpr CountNames kTorchNames = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
                     kOpenMpiNames = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                      "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                     kPmiNames = {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};

/// What a launcher says, and what ranks find each other by where MASTER_ADDR and MASTER_PORT do not tell.
struct Launched {
  RankPlace place;
  std::string first_host;      ///< empty: not known
  std::optional<int64_t> key;  ///< of the world among those of one machine
};

/// \throws Error{kUsage} unless rank < ranks
void RequireBelow(int64_t rank, const char* rank_name, int64_t ranks, const char* ranks_name) {
  if (rank < ranks) return;
  Refuse(std::string(rank_name) + ", " + ranks_name,
         "rank " + std::to_string(rank) + " cannot be one of " + std::to_string(ranks));
}

/// \throws Error{kUsage} where there are more ranks on this machine than in the world
void RequireWithin(const RankPlace& place, const char* local_ranks_name, const char* ranks_name) {
  if (place.local_ranks <= place.ranks) return;
  Refuse(std::string(local_ranks_name) + ", " + ranks_name, std::to_string(place.local_ranks) +
                                                                " ranks on this machine are more than all " +
                                                                std::to_string(place.ranks));
}

/// \returns nullopt where the launcher did not start this process
std::optional<RankPlace> ReadCounts(const Environment& environment, const CountNames& names) {
  const auto rank = environment.Number(names.rank, 0, kMostRanks - 1);
  if (!rank) return std::nullopt;
  const auto ranks = environment.Number(names.ranks, 1, kMostRanks);
  if (!ranks) Refuse(names.ranks, std::string("is not set, though ") + names.rank + " is");
  RequireBelow(*rank, names.rank, *ranks, names.ranks);
  RankPlace place;
  place.rank = *rank;
  place.ranks = *ranks;
  place.local_rank = environment.Number(names.local_rank, 0, kMostRanks - 1).value_or(0);
  // Where it is not told, there are as many as must be.
  place.local_ranks = environment.Number(names.local_ranks, 1, kMostRanks).value_or(place.local_rank + 1);
  RequireBelow(place.local_rank, names.local_rank, place.local_ranks, names.local_ranks);
  RequireWithin(place, names.local_ranks, names.ranks);
  return place;
}

std::optional<Launched> ByRunLocalRanks(const Environment& environment) {
  const std::string store = environment.Text(kLocalStoreVariable);
  if (store.empty()) return std::nullopt;
  auto place = ReadCounts(environment, kTorchNames);
  if (!place) Refuse(kTorchNames.rank, std::string("is not set, though ") + kLocalStoreVariable + " is");
  if (store != "-") {
    place->store_listen_fd =
        static_cast<int>(*environment.Number(kLocalStoreVariable, 0, std::numeric_limits<int>::max()));
  }
  place->launcher = kOwnLauncher;
  return Launched{.place = *place};
}

std::optional<Launched> ByTorchrun(const Environment& environment) {
  auto place = ReadCounts(environment, kTorchNames);
  if (!place) return std::nullopt;
  place->launcher = environment.Has("TORCHELASTIC_RUN_ID") ? "torchrun" : "environment";
  if (environment.Text("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    place->store_is_served = true;
    place->store_prefix =
        "/worker/attempt_" +
        std::to_string(environment.Number("TORCHELASTIC_RESTART_COUNT", 0, kMostRanks).value_or(0));
  }
  return Launched{.place = *place};
}

// ---- Slurm ----

/// The first host of "n[01-04,7],m2": "n01".
std::string FirstHost(const char* name, const std::string& list) {
  std::string host;
  for (size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      host += list[i];
      continue;
    }
    const size_t first_end = list.find_first_of("-,]", i), end = list.find(']', i);
    if (end == std::string::npos) Refuse(name, "'" + list + "' is no list of hosts");
    host += list.substr(i + 1, first_end - i - 1);
    i = end;
  }
  return host;
}

/// Entry `node` of "2(x3),1": of 2, 2, 2, 1.
int64_t TasksOfNode(const char* name, const std::string& list, int64_t node) {
  const auto refuse = [&] {
    Refuse(name, "'" + list + "' does not give the tasks of node " + std::to_string(node));
  };
  const char *at = list.data(), *const end = at + list.size();
  const auto take_number = [&] {
    int64_t number = 0;
    const auto [behind, status] = std::from_chars(at, end, number);
    if (status != std::errc() || number < 1) refuse();
    at = behind;
    return number;
  };
  const auto take = [&](std::string_view mark) {
    if (!std::string_view(at, static_cast<size_t>(end - at)).starts_with(mark)) return false;
    at += mark.size();
    return true;
  };
  for (int64_t nodes = 0; at != end;) {
    const int64_t tasks = take_number();
    if (take("(x")) {
      nodes += take_number();
      if (!take(")")) refuse();
    } else {
      ++nodes;
    }
    if (node < nodes) return tasks;
    if (at != end && !take(",")) refuse();
  }
  refuse();
  return 0;
}

bool IsInStep(const Environment& environment) {
  return environment.Has("SLURM_STEP_NUM_TASKS") && environment.Has("SLURM_PROCID");
}

/// Hosts and key of a step, or of the job that another launcher runs in: its own steps are not for all ranks.
void TakeJob(const Environment& environment, bool is_step, Launched* launched) {
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  const char* const hosts = is_step ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
  launched->first_host = FirstHost(hosts, environment.Text(hosts));
  const auto job = environment.Number("SLURM_JOB_ID", 0, kMost);
  const auto step = is_step ? environment.Number("SLURM_STEP_ID", 0, kMost) : std::nullopt;
  if (job) launched->key = kStepsOfJob * *job + step.value_or(0);
  if (job && step) launched->place.launch = "slurm " + std::to_string(*job) + "." + std::to_string(*step);
}

std::optional<Launched> BySlurm(const Environment& environment) {
  if (!IsInStep(environment)) return std::nullopt;
  Launched launched;
  RankPlace& place = launched.place;
  place.rank = *environment.Number("SLURM_PROCID", 0, kMostRanks - 1);
  place.ranks = *environment.Number("SLURM_STEP_NUM_TASKS", 1, kMostRanks);
  RequireBelow(place.rank, "SLURM_PROCID", place.ranks, "SLURM_STEP_NUM_TASKS");
  place.local_rank = environment.Number("SLURM_LOCALID", 0, kMostRanks - 1).value_or(0);
  place.local_ranks = place.local_rank + 1;
  constexpr char kTasks[] = "SLURM_STEP_TASKS_PER_NODE";
  if (const std::string tasks = environment.Text(kTasks); !tasks.empty()) {
    const int64_t node = environment.Number("SLURM_NODEID", 0, kMostRanks - 1).value_or(0);
    place.local_ranks = TasksOfNode(kTasks, tasks, node);
    RequireBelow(place.local_rank, "SLURM_LOCALID", place.local_ranks, kTasks);
    RequireWithin(place, kTasks, "SLURM_STEP_NUM_TASKS");
  }
  place.launcher = "slurm";
  TakeJob(environment, /*is_step=*/true, &launched);
  return launched;
}

// ---- MPI ----

std::optional<Launched> ByOpenMpi(const Environment& environment) {
  auto place = ReadCounts(environment, kOpenMpiNames);
  if (!place) return std::nullopt;
  place->launcher = "openmpi";
  Launched launched = {.place = *place};
  TakeJob(environment, /*is_step=*/false, &launched);
  if (const std::string job = environment.Text("PMIX_NAMESPACE"); !job.empty()) {
    launched.key = Crc32c(AsBytes(job));
    launched.place.launch = "openmpi " + job;
  }
  return launched;
}

std::optional<Launched> ByPmi(const Environment& environment) {
  auto place = ReadCounts(environment, kPmiNames);
  if (!place) return std::nullopt;
  // Slurm, too, sets these, and knows more of its own tasks.
  if (IsInStep(environment) && environment.Number("SLURM_PROCID", 0, kMostRanks - 1) == place->rank &&
      environment.Number("SLURM_STEP_NUM_TASKS", 1, kMostRanks) == place->ranks) {
    return BySlurm(environment);
  }
  place->launcher = kPmiLauncher;
  Launched launched = {.place = *place};
  TakeJob(environment, /*is_step=*/false, &launched);
  return launched;
}

/// \throws Error{kUsage} on variables that tell of ranks, but not which this is
void RefuseHalf(const Environment& environment) {
  if (environment.Number(kTorchNames.ranks, 1, kMostRanks).value_or(1) > 1) {
    Refuse(
        kTorchNames.rank,
        std::string("is not set, though ") + kTorchNames.ranks + " is " + environment.Text(kTorchNames.ranks),
        "start the ranks by torchrun, srun, mpirun or train --nproc, or unset WORLD_SIZE");
  }
  if (environment.Has("PMIX_RANK")) {
    Refuse("PMIX_RANK", "is set, but nothing says how many ranks there are",
           "start the ranks by mpirun or srun, or give them RANK and WORLD_SIZE, too");
  }
}

/// By the end of PMI_FD that its launcher has, which is one process a run and machine.
std::string LaunchOfPmi(const EnvironmentLookup& lookup) {
  const auto fd = Environment(lookup).Number("PMI_FD", 0, std::numeric_limits<int>::max());
  const auto maker = fd ? MakerOfSocket(static_cast<int>(*fd)) : std::nullopt;
  return maker ? "pmi of process " + std::to_string(*maker) : "";
}

void FindStore(const Environment& environment, Launched* launched) {
  RankPlace& place = launched->place;
  place.store_host = environment.Text("MASTER_ADDR");
  if (place.store_host.empty()) {
    place.store_host = place.local_ranks == place.ranks ? kLoopback : launched->first_host;
  }
  if (place.store_host.empty()) {
    Refuse("MASTER_ADDR", "is not set, and the ranks are on several machines",
           "give all ranks the name or address of the machine that rank 0 is on");
  }
  const int64_t port = launched->key ? kFirstPort + *launched->key % kPorts : kDefaultPort;
  place.store_port = static_cast<int>(environment.Number("MASTER_PORT", 1, kMostPort).value_or(port));
}

}  // namespace

std::optional<RankPlace> RankPlaceFromEnvironment(const EnvironmentLookup& lookup) {
  const Environment environment(lookup);
  for (const auto& by_launcher : {ByRunLocalRanks, ByTorchrun, ByOpenMpi, ByPmi, BySlurm}) {
    std::optional<Launched> launched = by_launcher(environment);
    if (!launched) continue;
    if (launched->place.ranks == 1) return std::nullopt;
    launched->place.restarts = RestartsFromEnvironment(lookup);
    FindStore(environment, &*launched);
    return launched->place;
  }
  RefuseHalf(environment);
  return std::nullopt;
}

std::optional<RankPlace> RankPlaceFromEnvironment() {
  return RankPlaceFromEnvironment([](const char* name) { return std::getenv(name); });
}

std::optional<int64_t> MakerOfSocket(int fd) {
  ucred maker = {};
  socklen_t size = sizeof(maker);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &maker, &size) != 0 || maker.pid <= 0) return std::nullopt;
  return maker.pid;
}

std::optional<RankPlace> TakeRankPlace() {
  std::optional<RankPlace> place = RankPlaceFromEnvironment();
  if (place && place->launcher == kPmiLauncher && place->local_ranks == place->ranks) {
    place->launch = LaunchOfPmi([](const char* name) { return std::getenv(name); });
  }
  for (const char* name : {kLocalStoreVariable, kTorchNames.rank, kTorchNames.ranks, kOpenMpiNames.rank,
                           kPmiNames.rank, "PMIX_RANK", "SLURM_STEP_NUM_TASKS"}) {
    unsetenv(name);
  }
  if (place && place->store_listen_fd) fcntl(*place->store_listen_fd, F_SETFD, FD_CLOEXEC);
  return place;
}

int64_t RestartsFromEnvironment(const EnvironmentLookup& lookup) {
  const Environment environment(lookup);
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  return environment.Number("TORCHELASTIC_RESTART_COUNT", 0, kMost).value_or(0) +
         environment.Number("SLURM_RESTART_COUNT", 0, kMost).value_or(0);
}

int64_t RestartsFromEnvironment() {
  return RestartsFromEnvironment([](const char* name) { return std::getenv(name); });
}

}  // namespace trainwright
