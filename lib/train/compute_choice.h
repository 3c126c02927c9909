/// Where a run computes and in what memory: what changes its speed and needs, and no result beyond rounding.
/// Decided once at the start of each process, in what its main has set up (lib/device/process_setup.h).
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <string>

#include "lib/device/process_setup.h"
#include "lib/loading/sample_stream.h"
#include "lib/nn/precision.h"
#include "lib/run/train_plan.h"
#include "lib/run/train_settings.h"
#include "lib/spec/activation_checkpointing.h"
#include "lib/spec/compile_mode.h"
#include "lib/spec/compute_kinds.h"
#include "lib/spec/model_config.h"
#include "lib/spec/offload_choice.h"
#include "lib/train/choice_log.h"
#include "lib/train/train_state.h"

namespace trainwright {

struct ComputeChoice {
  at::Device device = at::Device(at::kCPU);
  ComputeIdentity identity;
  ComputeKinds kinds = {};
  ActivationCheckpointing checkpointing = ActivationCheckpointing::kNo;
  OffloadChoice offload;
  CompileMode compile = CompileMode::kOff;
  std::string offload_folder;  ///< of the files that activations and gradients go to
  LoaderOptions loader;
  bool pin = false;          ///< micro-batches go to a GPU through pinned memory
  int64_t bucket_bytes = 0;  ///< of gradients that travel together between ranks
};

/// Decides what the settings leave open but for the loader, and reports it; the process stays as it is.
/// \throws Error{kUsage, kIo}
ComputeChoice ChooseCompute(const TrainSettings& settings, const ProcessSetup& process);

/// \throws Error{kUsage} on a residual stream in bf16 of a run that computes in another precision, or of a
///     model whose family has none
void RequireResidualStream(const TrainSettings& settings, const TrainPlan& plan, const ModelConfig& model);

/// Decides how that much data is made ready, and reports it.
/// \param choice whose device it is
/// \throws Error{kUsage}
void ChooseLoader(const TrainSettings& settings, uint64_t data_tokens, ChoiceLog* log, ComputeChoice* choice);

/// The device's peak rate, as the user says or as its maker does; nullopt: not known.
std::optional<double> PeakTflops(const TrainSettings& settings, at::Device device, Precision precision);

/// Steps between records of steps, as the user says or as suits the device: on a GPU a look at a step's
/// numbers waits for it.
int64_t LogEvery(const TrainSettings& settings, at::Device device);

}  // namespace trainwright
