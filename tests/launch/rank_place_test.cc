#include "lib/launch/rank_place.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::MessageOf;
using Variables = std::map<std::string, std::string>;

EnvironmentLookup In(const Variables& variables) {
  return [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

std::optional<RankPlace> PlaceIn(const Variables& variables) {
  return RankPlaceFromEnvironment(In(variables));
}

Variables With(Variables variables, const Variables& others) {
  for (const auto& [name, value] : others) variables[name] = value;
  return variables;
}

Variables Without(Variables variables, const std::vector<std::string>& names) {
  for (const std::string& name : names) variables.erase(name);
  return variables;
}

// What launchers set, as their own sources and pages have it.

/// \source torch/distributed/elastic/agent/server/local_elastic_agent.py, _start_workers
Variables Torchrun() {
  return {{"RANK", "5"},
          {"GROUP_RANK", "1"},
          {"ROLE_RANK", "5"},
          {"ROLE_NAME", "default"},
          {"LOCAL_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "4"},
          {"WORLD_SIZE", "8"},
          {"GROUP_WORLD_SIZE", "2"},
          {"ROLE_WORLD_SIZE", "8"},
          {"MASTER_ADDR", "head"},
          {"MASTER_PORT", "40393"},
          {"TORCHELASTIC_RESTART_COUNT", "2"},
          {"TORCHELASTIC_MAX_RESTARTS", "3"},
          {"TORCHELASTIC_RUN_ID", "none"},
          {"TORCHELASTIC_USE_AGENT_STORE", "True"},
          {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
          {"OMP_NUM_THREADS", "1"}};
}

/// Task 6 of 7 on four nodes, of srun in a batch script.
/// \source srun(1) of Slurm 22.05, "output environment variables"; src/common/env.c, env_array_for_step
Variables Srun() {
  return {{"SLURM_JOB_ID", "1720714"},
          {"SLURM_JOBID", "1720714"},
          {"SLURM_JOB_NODELIST", "m2,n[01-04,07]"},
          {"SLURM_NODELIST", "m2,n[01-04,07]"},
          {"SLURM_NTASKS", "7"},
          {"SLURM_NPROCS", "7"},
          {"SLURM_NNODES", "4"},
          {"SLURM_TASKS_PER_NODE", "2(x3),1"},
          {"SLURM_STEP_ID", "3"},
          {"SLURM_STEPID", "3"},
          {"SLURM_STEP_NODELIST", "n[01-03,07]"},
          {"SLURM_STEP_NUM_NODES", "4"},
          {"SLURM_STEP_NUM_TASKS", "7"},
          {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
          {"SLURM_NODEID", "3"},
          {"SLURM_PROCID", "6"},
          {"SLURM_LOCALID", "0"},
          {"SLURM_SRUN_COMM_PORT", "41245"}};
}

/// A batch script, which runs once on the job's first node.
/// \source src/common/env.c of Slurm, env_array_for_batch_job; slurmstepd sets SLURM_PROCID there, too
Variables Sbatch() {
  return With(
      Without(Srun(), {"SLURM_STEP_ID", "SLURM_STEPID", "SLURM_STEP_NODELIST", "SLURM_STEP_NUM_NODES",
                       "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"}),
      {{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "0"}, {"ENVIRONMENT", "BATCH"}});
}

/// \source Open MPI 5, "Environment variables set for MPI applications"; recorded of mpirun of 4.1.4
Variables Mpirun() {
  return {{"OMPI_COMM_WORLD_SIZE", "4"},
          {"OMPI_COMM_WORLD_RANK", "2"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
          {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
          {"OMPI_COMM_WORLD_NODE_RANK", "2"},
          {"OMPI_UNIVERSE_SIZE", "4"},
          {"PMIX_RANK", "2"},
          {"PMIX_NAMESPACE", "2463563777"}};
}

/// \source recorded of mpiexec.hydra of MPICH 4.0.2; Intel MPI sets the same
Variables Mpiexec() {
  return {{"PMI_RANK", "1"},
          {"PMI_SIZE", "3"},
          {"PMI_FD", "8"},
          {"MPI_LOCALRANKID", "1"},
          {"MPI_LOCALNRANKS", "3"},
          {"HYDI_CONTROL_FD", "7"},
          {"MPIR_CVAR_CH3_INTERFACE_HOSTNAME", "vm"}};
}

TEST(RankPlaceTest, TorchrunsVariablesAreUnderstood) {
  EXPECT_EQ(PlaceIn(Torchrun()), (RankPlace{.rank = 5,
                                            .ranks = 8,
                                            .local_rank = 1,
                                            .local_ranks = 4,
                                            .store_host = "head",
                                            .store_port = 40393,
                                            .store_is_served = true,
                                            .store_prefix = "/worker/attempt_2",
                                            .restarts = 2,
                                            .launcher = "torchrun"}));
}

TEST(RankPlaceTest, TorchrunsRanksServeTheStoreWhereItsAgentDoesNot) {
  const auto place = PlaceIn(With(Torchrun(), {{"TORCHELASTIC_USE_AGENT_STORE", "False"}}));
  ASSERT_TRUE(place);
  EXPECT_FALSE(place->store_is_served);
  EXPECT_EQ(place->store_prefix, "");
}

TEST(RankPlaceTest, RankAndWorldSizeAloneAreEnoughWithAnAddress) {
  EXPECT_EQ(
      PlaceIn({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "10.0.0.7"}, {"MASTER_PORT", "1234"}}),
      (RankPlace{.rank = 1,
                 .ranks = 2,
                 .local_rank = 0,
                 .local_ranks = 1,
                 .store_host = "10.0.0.7",
                 .store_port = 1234,
                 .launcher = "environment"}));
}

TEST(RankPlaceTest, ATaskOfSrunIsARank) {
  EXPECT_EQ(PlaceIn(Srun()), (RankPlace{.rank = 6,
                                        .ranks = 7,
                                        .local_rank = 0,
                                        .local_ranks = 1,
                                        .store_host = "n01",
                                        // 16 x 1,720,714 + 3 = 27,531,427, and 1,376 x 20,000 = 27,520,000
                                        .store_port = 10000 + 11427,
                                        .launcher = "slurm",
                                        .launch = "slurm 1720714.3"}));
}

TEST(RankPlaceTest, ABatchScriptIsNoRank) {
  EXPECT_EQ(PlaceIn(Sbatch()), std::nullopt);
}

/// \source recorded in a job of `srun --pty bash`: the step's number is that of interactive ones
TEST(RankPlaceTest, AnInteractiveStepIsNoRank) {
  EXPECT_EQ(PlaceIn({{"SLURM_JOB_ID", "1720714"},
                     {"SLURM_STEP_ID", "4294967290"},
                     {"SLURM_STEP_NODELIST", "GPU71E4"},
                     {"SLURM_STEP_NUM_NODES", "1"},
                     {"SLURM_STEP_NUM_TASKS", "1"},
                     {"SLURM_STEP_TASKS_PER_NODE", "1"},
                     {"SLURM_TASKS_PER_NODE", "8"},
                     {"SLURM_NODEID", "0"},
                     {"SLURM_PROCID", "0"},
                     {"SLURM_LOCALID", "0"}}),
            std::nullopt);
}

TEST(RankPlaceTest, TasksOfANodeAreCountedFromSlurmsShortForm) {
  const struct {
    const char *tasks, *node;
    int64_t local_ranks;
  } cases[] = {
      {"2(x3),1", "0", 2},       {"2(x3),1", "2", 2},       {"2(x3),1", "3", 1},       {"4", "0", 4},
      {"1,2,1(x3),3,2", "1", 2}, {"1,2,1(x3),3,2", "4", 1}, {"1,2,1(x3),3,2", "5", 3}, {"5,4(x3)", "1", 4}};
  for (const auto& [tasks, node, local_ranks] : cases) {
    const auto place = PlaceIn(
        With(Srun(), {{"SLURM_STEP_TASKS_PER_NODE", tasks}, {"SLURM_NODEID", node}, {"SLURM_LOCALID", "0"}}));
    ASSERT_TRUE(place);
    EXPECT_EQ(place->local_ranks, local_ranks) << tasks << " of node " << node;
  }
}

/// As `scontrol show hostnames` expands them.
TEST(RankPlaceTest, TheFirstHostOfSlurmsListIsWhereRanksMeet) {
  const struct {
    const char *hosts, *first;
  } cases[] = {{"n[01-04,7],m2", "n01"},
               {"m2,n[01-04]", "m2"},
               {"gpu7", "gpu7"},
               {"n[9,11-12]", "n9"},
               {"rack[2-3]node[05-08]", "rack2node05"},
               {"n[001-128]-ib,x", "n001-ib"}};
  for (const auto& [hosts, first] : cases) {
    const auto place = PlaceIn(With(Srun(), {{"SLURM_STEP_NODELIST", hosts}}));
    ASSERT_TRUE(place);
    EXPECT_EQ(place->store_host, first);
  }
}

TEST(RankPlaceTest, StepsOfAJobMeetAtPortsOfTheirOwn) {
  const auto port = [](const char* job, const char* step) {
    return PlaceIn(With(Srun(), {{"SLURM_JOB_ID", job}, {"SLURM_STEP_ID", step}}))->store_port;
  };
  EXPECT_EQ(port("1", "0"), 10016);
  EXPECT_EQ(port("1", "1"), 10017);
  EXPECT_EQ(port("2", "0"), 10032);
  EXPECT_EQ(port("4294967295", "15"), 10000 + (16 * 4294967295 + 15) % 20000);
}

TEST(RankPlaceTest, RanksOfOneMachineMeetOnTheLoopback) {
  const auto place = PlaceIn(With(Srun(), {{"SLURM_STEP_NUM_TASKS", "7"},
                                           {"SLURM_STEP_TASKS_PER_NODE", "7"},
                                           {"SLURM_NODEID", "0"},
                                           {"SLURM_LOCALID", "6"}}));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->store_host, "127.0.0.1");
}

TEST(RankPlaceTest, RanksOfMpirunAreUnderstood) {
  constexpr int64_t kCrcOfNamespace = 4'207'273'039;  // CRC-32C of "2463563777", by a bitwise program
  EXPECT_EQ(PlaceIn(Mpirun()), (RankPlace{.rank = 2,
                                          .ranks = 4,
                                          .local_rank = 2,
                                          .local_ranks = 4,
                                          .store_host = "127.0.0.1",
                                          .store_port = 10000 + kCrcOfNamespace % 20000,
                                          .launcher = "openmpi",
                                          .launch = "openmpi 2463563777"}));
}

TEST(RankPlaceTest, MpirunOnSeveralMachinesNeedsAnAddressOrSlurm) {
  const Variables several =
      With(Mpirun(), {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}});
  EXPECT_EQ(CodeOf([&] { PlaceIn(several); }), ErrorCode::kUsage);
  EXPECT_NE(MessageOf([&] { PlaceIn(several); }).find("MASTER_ADDR"), std::string::npos);
  EXPECT_EQ(PlaceIn(With(several, {{"MASTER_ADDR", "10.1.1.1"}}))->store_host, "10.1.1.1");
  // Its daemons are tasks of Slurm, on other nodes than all: only the job's list is the same everywhere.
  const auto in_daemon = PlaceIn(With(Srun(), several));
  EXPECT_EQ(in_daemon->store_host, "m2");
  EXPECT_EQ(in_daemon->rank, 2);
  EXPECT_EQ(in_daemon->launcher, "openmpi");
  EXPECT_EQ(PlaceIn(With(Sbatch(), several)), in_daemon);
}

TEST(RankPlaceTest, RanksOfMpiexecAreUnderstood) {
  EXPECT_EQ(PlaceIn(Mpiexec()), (RankPlace{.rank = 1,
                                           .ranks = 3,
                                           .local_rank = 1,
                                           .local_ranks = 3,
                                           .store_host = "127.0.0.1",
                                           .store_port = 29500,
                                           .launcher = "pmi"}));
}

/// `srun --mpi=pmi2` sets PMI's variables and leaves the local ones to its own.
TEST(RankPlaceTest, SlurmSpeaksForItsOwnPmi) {
  EXPECT_EQ(PlaceIn(With(Srun(), {{"PMI_RANK", "6"}, {"PMI_SIZE", "7"}})), PlaceIn(Srun()));
  EXPECT_EQ(PlaceIn(With(Srun(), {{"PMIX_RANK", "6"}, {"PMIX_NAMESPACE", "slurm.pmix.1720714.3"}})),
            PlaceIn(Srun()));
}

TEST(RankPlaceTest, TheNearestLauncherCounts) {
  EXPECT_EQ(PlaceIn(With(Srun(), Torchrun())), PlaceIn(Torchrun()));
  EXPECT_EQ(PlaceIn(With(Torchrun(), {{"RANK", "1"},
                                      {"WORLD_SIZE", "2"},
                                      {"LOCAL_RANK", "1"},
                                      {"LOCAL_WORLD_SIZE", "2"},
                                      {"MASTER_ADDR", "127.0.0.1"},
                                      {"MASTER_PORT", "4321"},
                                      {kLocalStoreVariable, "-"}})),
            (RankPlace{.rank = 1,
                       .ranks = 2,
                       .local_rank = 1,
                       .local_ranks = 2,
                       .store_host = "127.0.0.1",
                       .store_port = 4321,
                       .restarts = 2,
                       .launcher = kOwnLauncher}));
}

TEST(RankPlaceTest, MasterAddrAndPortComeFirst) {
  for (const Variables& launcher : {Srun(), Mpirun(), Mpiexec()}) {
    const auto place = PlaceIn(With(launcher, {{"MASTER_ADDR", "fd00::1"}, {"MASTER_PORT", "5"}}));
    ASSERT_TRUE(place);
    EXPECT_EQ(place->store_host, "fd00::1");
    EXPECT_EQ(place->store_port, 5);
  }
}

TEST(RankPlaceTest, NothingAndWorldsOfOneAreAlone) {
  EXPECT_EQ(PlaceIn({}), std::nullopt);
  EXPECT_EQ(PlaceIn({{"RANK", "0"}, {"WORLD_SIZE", "1"}}), std::nullopt);
  EXPECT_EQ(PlaceIn({{"WORLD_SIZE", "1"}}), std::nullopt);
  EXPECT_EQ(PlaceIn({{"RANK", ""}, {"WORLD_SIZE", ""}}), std::nullopt);
}

TEST(RankPlaceTest, VariablesThatContradictEachOtherAreRefusedByName) {
  const struct {
    Variables variables;
    const char* named;
  } cases[] = {
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "RANK"},
      {{{"RANK", "1"}}, "WORLD_SIZE"},
      {{{"WORLD_SIZE", "4"}}, "RANK"},
      {{{"RANK", "-1"}, {"WORLD_SIZE", "4"}}, "RANK"},
      {{{"RANK", "1x"}, {"WORLD_SIZE", "4"}}, "RANK"},
      {{{"RANK", "1"}, {"WORLD_SIZE", "0"}}, "WORLD_SIZE"},
      {{{"RANK", "1"}, {"WORLD_SIZE", "4"}}, "MASTER_ADDR"},
      {With(Torchrun(), {{"MASTER_PORT", "70000"}}), "MASTER_PORT"},
      {With(Torchrun(), {{"LOCAL_RANK", "4"}}), "LOCAL_RANK"},
      {With(Torchrun(), {{"LOCAL_WORLD_SIZE", "9"}}), "LOCAL_WORLD_SIZE"},
      {With(Torchrun(), {{"TORCHELASTIC_RESTART_COUNT", "often"}}), "TORCHELASTIC_RESTART_COUNT"},
      {With(Srun(), {{"SLURM_PROCID", "7"}}), "SLURM_PROCID"},
      {With(Srun(), {{"SLURM_STEP_TASKS_PER_NODE", "2(x3"}}), "SLURM_STEP_TASKS_PER_NODE"},
      {With(Srun(), {{"SLURM_NODEID", "4"}}), "SLURM_STEP_TASKS_PER_NODE"},
      {With(Srun(), {{"SLURM_STEP_NODELIST", "n[01-03"}}), "SLURM_STEP_NODELIST"},
      {With(Srun(), {{"SLURM_STEP_NODELIST", ""}}), "MASTER_ADDR"},
      {Without(Mpirun(), {"OMPI_COMM_WORLD_SIZE"}), "OMPI_COMM_WORLD_SIZE"},
      {{{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "prterun-host-17@1"}}, "PMIX_RANK"},
      {{{kLocalStoreVariable, "3"}}, "RANK"},
  };
  for (const auto& [variables, named] : cases) {
    SCOPED_TRACE(named);
    const auto read = [&, &variables = variables] { PlaceIn(variables); };
    EXPECT_EQ(CodeOf(read), ErrorCode::kUsage);
    EXPECT_TRUE(MessageOf(read).starts_with(named)) << MessageOf(read);
  }
}

TEST(RankPlaceTest, RestartsOfTorchrunAndOfSlurmsJobAddUp) {
  EXPECT_EQ(RestartsFromEnvironment(In({})), 0);
  const Variables both = {{"TORCHELASTIC_RESTART_COUNT", "0"}, {"SLURM_RESTART_COUNT", "1"}};
  EXPECT_EQ(RestartsFromEnvironment(In(both)), 1);
  const Variables requeued = With(Srun(), {{"SLURM_RESTART_COUNT", "2"}});
  EXPECT_EQ(PlaceIn(requeued)->restarts, 2);
}

TEST(RankPlaceTest, RunsOfOneLauncherAreToldApartByWhatItCallsThem) {
  const auto launch = [](const Variables& variables) { return PlaceIn(variables)->launch; };
  EXPECT_NE(launch(Srun()), launch(With(Srun(), {{"SLURM_STEP_ID", "4"}})));
  EXPECT_NE(launch(Mpirun()), launch(With(Mpirun(), {{"PMIX_NAMESPACE", "2463563778"}})));
  // Another rank of the same run.
  EXPECT_EQ(launch(Srun()),
            launch(With(Srun(), {{"SLURM_PROCID", "5"}, {"SLURM_LOCALID", "1"}, {"SLURM_NODEID", "2"}})));
  EXPECT_EQ(
      launch(Mpirun()),
      launch(With(Mpirun(),
                  {{"OMPI_COMM_WORLD_RANK", "3"}, {"PMIX_RANK", "3"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "3"}})));
  EXPECT_EQ(launch(Mpiexec()), "") << "its variables do not say";
}

TEST(RankPlaceTest, ThePairOfSocketsOfAPmiNamesTheProcessThatMadeIt) {
  int ends[2], pipe_ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  ASSERT_EQ(pipe(pipe_ends), 0);
  const int tcp = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_GE(tcp, 0);
  EXPECT_EQ(MakerOfSocket(ends[1]), getpid());
  EXPECT_EQ(MakerOfSocket(pipe_ends[0]), std::nullopt);
  EXPECT_EQ(MakerOfSocket(tcp), std::nullopt);
  for (const int fd : {ends[0], ends[1], pipe_ends[0], pipe_ends[1], tcp}) close(fd);
}

TEST(RankPlaceTest, WhatARankStartsIsNone) {
  const Variables rank = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}};
  for (const auto& [name, value] : rank) setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
  ASSERT_TRUE(RankPlaceFromEnvironment());
  EXPECT_TRUE(TakeRankPlace());
  EXPECT_EQ(RankPlaceFromEnvironment(), std::nullopt);
  for (const auto& [name, value] : rank) unsetenv(name.c_str());
}

}  // namespace
}  // namespace trainwright
