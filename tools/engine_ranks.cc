#include "tools/engine_ranks.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "lib/base/build_id.h"
#include "lib/base/error.h"
#include "lib/base/host.h"
#include "lib/base/log.h"
#include "lib/base/signals.h"
#include "lib/base/version.h"
#include "lib/cli/named_files.h"
#include "lib/device/determinism.h"
#include "lib/device/device.h"
#include "lib/device/torch_log.h"
#include "lib/dist/c10d_world.h"
#include "lib/dist/equal_facts.h"
#include "lib/dist/nccl_choice.h"
#include "lib/dist/rank_threads.h"
#include "lib/dist/run_in_world.h"
#include "lib/dist/shared_work.h"
#include "lib/io/random_reader.h"
#include "lib/launch/local_ranks.h"
#include "lib/launch/rank_gpu.h"
#include "lib/launch/rank_place.h"
#include "lib/nn/linear/gemm_kernels.h"
#include "lib/probe/cpu_gemm_choice.h"
#include "lib/probe/cpu_gemm_trials.h"

namespace trainwright {
namespace {

/// Rank 0 speaks for all, the others of what goes wrong with them.
void SpeakAs(int64_t rank, const std::string& tool, CommonOptions* common) {
  if (rank == 0) return;
  ConfigureLog(tool + "[" + std::to_string(rank) + "]", common->quiet     ? LogLevel::kError
                                                        : common->verbose ? LogLevel::kDebug
                                                                          : LogLevel::kWarning);
  SetLogSpeaker(false);
  common->progress = ProgressMode::kNever;
  common->summary_path.clear();
}

/// Refuses --nproc in a process that something else started as one of several: each would be several. What
/// only a run remembers is no matter then.
void RequireNoNproc(int64_t nproc, const std::vector<OptionValue>& options, const std::string& launcher) {
  if (nproc == 1 || !IsGiven("nproc", options)) return;
  throw Error(ErrorCode::kUsage, "--nproc",
              "has no meaning in a process that is one of several by its environment (" + launcher + ")", "",
              "leave it out: what started the processes says how many there are");
}

/// Lets CUDA's libraries, which are not loaded yet, see the rank's GPU alone.
void ShowOneGpu(int64_t local_rank) {
  constexpr char kVariable[] = "CUDA_VISIBLE_DEVICES";
  std::optional<std::string> visible;
  if (const char* const value = std::getenv(kVariable)) visible = value;
  const auto gpu = VisibleGpuOfRank(visible, CountMachineGpus(), local_rank);
  if (gpu) setenv(kVariable, gpu->c_str(), /*overwrite=*/1);
}

/// Ranks that are started here read again what this process has read its options from: of a pipe nothing is
/// left, which would be taken for a file that gives none.
void RequireFilesToReadAgain(int64_t ranks, const std::vector<NamedFile>& files) {
  for (const auto& [option, path] : files) {
    const bool is_always_empty = path == "/dev/null";
    if (is_always_empty || !IsReadOnce(path)) continue;
    throw Error(ErrorCode::kUsage, option,
                path + " can be read once only, and " + std::to_string(ranks) + " ranks are to read it", "",
                "write it to a file, and name that");
  }
}

void TellNotices(const std::vector<std::string>& notices) {
  for (const std::string& notice : notices) LogInfo(notice);
}

/// Ranks on GPUs exchange through NCCL where all can, else through the host.
void ChooseExchange(C10dWorld* world, const c10::Device& device) {
  if (device.is_cpu()) return;
  const std::string why_not =
      WhyNotNccl(world, {.has_nccl = C10dWorld::HasNccl(), .identity = GpuIdentity(device)});
  if (world->is_writer()) {
    LogWarning(why_not.empty()
                   ? "the ranks' GPUs exchange through NCCL, which is unverified: no machine with "
                     "several GPUs has run it yet"
                   : "the ranks' GPUs exchange through the host, by Gloo, for " + why_not);
  }
  world->UseGpus(why_not.empty());
}

ProcessRequest ProcessOf(const EngineRequest& request, World* world, int64_t restarts) {
  ProcessRequest process = request.process;
  if (process.threads == 0) process.threads = request.threads_to_keep(world, restarts);
  return process;
}

struct AgreedKernels {
  CpuGemms gemms;
  std::optional<double> bf16_gain;  ///< as ApplyCpuGemms takes it
};

/// What rank 0 chooses, for all ranks.
AgreedKernels AgreeOnKernels(const EngineRequest& request, World* world, const ProcessSetup& setup,
                             int64_t restarts) {
  std::optional<double> gain;
  const auto choose = [&] {
    const std::optional<CpuGemms> kept = request.kernels_to_keep(restarts);
    // On another processor they cannot be, which those who continue the run report.
    if (kept) return WhyNotCpuGemms(*kept).empty() ? *kept : UsualCpuGemms();
    return ChooseCpuGemms({.kernels = request.kernels,
                           .measures = request.measures_kernels,
                           .machine = [&] { return ThisCpuGemmMachine(setup.threads); },
                           .cache_path = CpuGemmCachePath(),
                           .announce = HoldInfo},
                          &gain);
  };
  constexpr int64_t kBf16Kinds = 3;
  const int64_t code = AsWriter(world, [&] {  // alike on all ranks, whose capability is
    const CpuGemms chosen = choose();
    return static_cast<int64_t>(chosen.fp32) * kBf16Kinds + static_cast<int64_t>(chosen.bf16);
  });
  const int64_t gain_code = AsWriter(
      world, [&] { return gain ? static_cast<int64_t>(std::llround(*gain * kPartsOfGain)) : int64_t{0}; });
  if (gain_code > 0) gain = static_cast<double>(gain_code) / kPartsOfGain;
  return {{static_cast<CpuGemms::Fp32>(code / kBf16Kinds), static_cast<CpuGemms::Bf16>(code % kBf16Kinds)},
          gain};
}

/// \throws Error{kUsage} on kernels that there are not, or that the processor lacks
void SetUpKernels(const EngineRequest& request, World* world, const ProcessSetup& setup, int64_t restarts) {
  CheckKernelsOption(request.kernels);
  if (setup.device.is_cpu()) {
    const AgreedKernels agreed = AgreeOnKernels(request, world, setup, restarts);
    ApplyCpuGemms(agreed.gemms, agreed.bf16_gain);
  } else if (NamesKernels(request.kernels) && world->is_writer()) {
    LogWarning("--kernels has no effect on a GPU: it is for a CPU's GEMMs");
  }
}

/// \throws as RunEngine
int RunInWorldOf(const RankPlace& place, const EngineRequest& request,
                 const std::function<int(const EngineProcess&)>& work) {
  QuietTorchLog();
  OutliveClosedPipes();  // what is sent to a rank that is gone ends no other silently
  ShowOneGpu(place.local_rank);
  SetUpBackend(request.process);  // ranks connect by torch
  C10dWorld world(place, {.timeout_s = request.dist_timeout_s});
  return RunInWorld(&world, [&] {
    Facts facts = request.facts;
    facts.insert({{"version", TRAINWRIGHT_VERSION},
                  {"build of the program", ProgramBuildId()},
                  {"torch build", TorchBuild()},
                  {"CPU capability", CpuCapability()},
                  {"--threads", std::to_string(request.process.threads)},
                  {"--kernels", request.kernels}});
    RequireEqual(&world, facts);
    ProcessRequest process = ProcessOf(request, &world, place.restarts);
    if (process.threads == 0) process.threads = ThreadsOfRanks(&world, MachineIdentity(), UsableCores());
    const ProcessSetup setup = SetUpProcess(process);
    RequireEqual(&world, {{"device", setup.device.str()}});  // what auto came to
    ChooseExchange(&world, setup.device);
    SetUpKernels(request, &world, setup, place.restarts);
    return work({.world = &world, .setup = setup, .restarts = place.restarts});
  });
}

int RunRank(const RankPlace& place, const EngineRequest& request,
            const std::function<int(const EngineProcess&)>& work) {
  try {
    return RunInWorldOf(place, request, work);
  } catch (const CommonError& error) {  // rank 0 tells of it
    return static_cast<int>(error.code());
  } catch (const Error& error) {  // of a reader that went away a filter tells nobody
    if (error.code() != ErrorCode::kReaderLeft) throw;
    return static_cast<int>(error.code());
  }
}

}  // namespace

bool IsGiven(const std::string& key, const std::vector<OptionValue>& options) {
  return std::any_of(options.begin(), options.end(), [&](const OptionValue& option) {
    return option.key == key && option.origin > OptionOrigin::kRemembered;
  });
}

int RunEngine(const EngineRequest& request, ToolRun* run,
              const std::function<int(const EngineProcess& process)>& asked_work) {
  const int64_t restarts = RestartsFromEnvironment();
  const auto work = [&](const EngineProcess& process) {
    if (process.setup.device.is_cpu()) run->summary["kernels"] = CpuGemmsName(ChosenCpuGemms());
    return asked_work(process);
  };
  const std::optional<RankPlace> place = TakeRankPlace();
  if (place) {
    SpeakAs(place->rank, run->tool, &run->common);
    TellNotices(run->notices);
    if (place->launcher != kOwnLauncher) RequireNoNproc(request.nproc, run->options, place->launcher);
    request.check(place->ranks);
    return RunRank(*place, request, work);
  }
  if (request.nproc > 1) RequireFilesToReadAgain(request.nproc, run->option_files);
  request.check(request.nproc);
  if (request.nproc == 1) {
    TellNotices(run->notices);
    const ProcessSetup setup = SetUpProcess(ProcessOf(request, Solo(), restarts));
    SetUpKernels(request, Solo(), setup, restarts);
    return work({.world = Solo(), .setup = setup, .restarts = restarts});
  }
  const int status =
      RunLocalRanks({.ranks = request.nproc, .argv = request.argv, .grace_s = request.dist_timeout_s});
  run->common.summary_path.clear();  // rank 0 has written it
  return status;
}

}  // namespace trainwright
