/// Where a run computes and in what memory: what changes its speed and needs, and no result beyond rounding.
/// Decided once at the start of each process.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <string>

#include "lib/loading/sample_stream.h"
#include "lib/nn/attention/attention_backend.h"
#include "lib/nn/precision.h"
#include "lib/run/train_settings.h"
#include "lib/spec/activation_checkpointing.h"
#include "lib/spec/offload_choice.h"
#include "lib/train/choice_log.h"
#include "lib/train/train_state.h"

namespace trainwright {

struct ComputeChoice {
  at::Device device = at::Device(at::kCPU);
  ComputeIdentity identity;
  AttentionBackend attention = AttentionBackend::kAuto;
  ActivationCheckpointing checkpointing = ActivationCheckpointing::kNo;
  OffloadChoice offload;
  std::string offload_folder;               ///< of the files that activations and gradients go to
  std::optional<int64_t> memory_cap_bytes;  ///< --mem-fraction
  LoaderOptions loader;
  bool pin = false;  ///< micro-batches go to a GPU through pinned memory
};

/// Takes the threads, the device and the share of its memory that the settings ask for, and tells of them.
/// \throws Error{kUsage, kDevice, kIo}
ComputeChoice ChooseCompute(const TrainSettings& settings, ChoiceLog* log);

/// The device's peak rate, as the user says or as its maker does; nullopt: not known.
std::optional<double> PeakTflops(const TrainSettings& settings, at::Device device, Precision precision);

}  // namespace trainwright
