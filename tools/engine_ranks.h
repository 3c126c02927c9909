/// The processes of an engine: one alone, or one of several ranks, whether `--nproc` or another launcher
/// starts them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/cli/tool.h"
#include "lib/device/process_setup.h"
#include "lib/dist/facts.h"
#include "lib/dist/world.h"
#include "lib/spec/cpu_gemms.h"

namespace trainwright {

struct EngineRequest {
  std::vector<std::string> argv;
  int64_t nproc = 1;  ///< ranks that are to be started here
  double dist_timeout_s = 60;
  ProcessRequest process;  ///< 0 threads are those below, or of several ranks their share of the cores
  /// Threads that are to be kept where `process` has none; 0: none are. All ranks call together.
  std::function<int(World* world, int64_t restarts)> threads_to_keep = [](World*, int64_t) { return 0; };
  /// Of GEMMs on a CPU, as ChooseCpuGemms takes them: rank 0's choice is that of all.
  std::string kernels = "auto";
  bool measures_kernels = true;  ///< "auto" stands for "usual" where it does not
  /// Kernels that are to be kept, whatever `kernels` is; nullopt: none are. Rank 0 alone calls it.
  std::function<std::optional<CpuGemms>(int64_t restarts)> kernels_to_keep = [](int64_t) {
    return std::optional<CpuGemms>();
  };
  /// What else must be the same in all ranks, by names that messages use. Of each, version, build, torch
  /// build, CPU capability, --threads, --kernels and device are compared.
  Facts facts = {};
  /// Refuses what this many ranks cannot do; called first of all.
  std::function<void(int64_t ranks)> check = [](int64_t) {};
};

/// Whether somebody gives an option, and not what a run remembers alone.
bool IsGiven(const std::string& key, const std::vector<OptionValue>& options);

/// One process of them, set up for its work.
struct EngineProcess {
  World* world;
  ProcessSetup setup;
  int64_t restarts;  ///< of all of them so far, by their launcher
};

/// Starts the ranks and waits for them, or does the work as one of them, or alone. Ranks other than 0 report
/// warnings and errors alone, as "train[3]", and write no summary; the notices of `run` are reported once. On
/// a CPU the summary says which kernels compute GEMMs.
/// For mains, before other threads run.
/// \returns the exit status of the work; of ranks that were started here, as RunLocalRanks; of a rank whose
///     work throws Error{kReaderLeft} its status, in silence
/// \throws Error: kUsage, of ranks that differ as well; kIo where ranks do not find each other; what the work
///     throws
int RunEngine(const EngineRequest& request, ToolRun* run,
              const std::function<int(const EngineProcess& process)>& work);

}  // namespace trainwright
