/// The work of `gpu-probe`: what the machine is, how fast it is, and which options train should get.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/machine/gpu_state.h"
#include "lib/machine/host_info.h"
#include "lib/machine/measurement.h"
#include "lib/memory/batch_search.h"
#include "lib/model/model_family.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/probe/attention_matrix.h"
#include "lib/probe/recommendation.h"

namespace trainwright {

struct ProbeOptions {
  bool quick = false;           ///< 2 s in all instead of 10
  double sustained_s = 0;       ///< for each measurement; 0: not asked for
  std::string gpu_required_by;  ///< the option that asks for a GPU, as typed; empty: none does
  bool use_gpu = true;          ///< false: measure the CPU, whatever GPU there is
  std::string model;            ///< preset or config.json; empty: train's default for the device
  int64_t sequence_tokens = 0;  ///< 0: train's default for the model
  int64_t vocab_size = 0;       ///< of a preset
  int threads = 1;              ///< that compute, as SetUpProcess has set them
  std::string folder = ".";     ///< whose disk is measured
  uint64_t disk_bytes = 0;      ///< written at most; 0: the disk is not measured
  /// Called before a CPU is measured: has its GEMMs computed as training computes them, and returns how many
  /// times as fast as fp32 bf16 is then, as IsBf16Worthwhile takes it.
  std::function<std::optional<double>()> set_up_kernels = [] { return std::optional<double>(); };
};

struct ProbeReport {
  std::string time;   ///< RFC 3339
  std::string label;  ///< how long measurements lasted: "quick", "short" or "sustained"
  HostInfo host;
  DiskInfo disk;
  GpuEvidence evidence;
  GpuVerdict verdict;
  std::optional<int> cuda_runtime_version;
  std::string torch_build, cpu_capability;
  std::string device;  ///< that was measured: "cpu" or "cuda"
  int threads = 0;
  ProbedModel model;
  int64_t vocab_size = 0;
  nlohmann::ordered_json environment;  ///< the variables that change speed, as far as they are set
  std::vector<Measurement> measured;
  std::vector<AttentionAnswer> attention;
  std::optional<BatchSearch> batch;
  Recommendation recommendation;
  std::vector<std::string> warnings;
};

/// \param optimizers hold that of a plan that names none: what is advised counts its states
/// \throws Error{kDevice} where a GPU is required and none is usable, Error{kUsage} on a model that is none,
/// and Error{kInterrupted, kTerminated} once a signal asked to stop. What cannot be measured is a warning.
ProbeReport RunProbe(const ModelFamilies& families, const OptimizerRegistry& optimizers,
                     const ProbeOptions& options);

/// gpu_probe.schema.json describes it.
nlohmann::ordered_json EncodeProbeReport(const ProbeReport& report);
/// Tables for people.
std::string FormatProbeReport(const ProbeReport& report);

}  // namespace trainwright
