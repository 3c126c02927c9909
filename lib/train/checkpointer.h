/// A checkpoint: man/trainwright-checkpoint.5, version 2.
///
///   config.json, model.safetensors, tokenizer files   as Hugging Face transformers reads them, fp32 weights
///   trainwright_state.safetensors                     what else the next step depends on; no clock or path
///   metadata.json                                     sha256 of every file, provenance, volatile facts
///
/// Checkpoints are made between optimizer steps only, so no gradients are kept, and the state says so
/// (accumulation phase 0). Random numbers have no state but the plan's seed and the cursor (lib/base/rng.h).
/// metadata.json is written last, so a folder without it, or one whose files do not match it, is no
/// checkpoint.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/formats/tokenizer_identity.h"
#include "lib/model/language_model.h"
#include "lib/train/run_directory.h"
#include "lib/train/train_plan.h"
#include "lib/train/trainer.h"

namespace trainwright {

inline constexpr char kStateFileName[] = "trainwright_state.safetensors";
inline constexpr char kCheckpointMetadataName[] = "metadata.json";

/// What besides plan, data and weights decides the bits of a run. A resumed run on other values is the same
/// run up to rounding only.
struct ComputeIdentity {
  std::string device;          ///< "cpu"
  std::string cpu_capability;  ///< "AVX512+BF16"
  std::string torch_build;
  int64_t threads = 0;
  std::string attention = "auto";  ///< the backend asked for
  bool operator==(const ComputeIdentity&) const = default;
};

/// The content of trainwright_state.safetensors.
struct TrainState {
  TrainPlan plan;
  TrainerState trainer;
  ComputeIdentity compute;
  std::string order_fingerprint;  ///< of the sample stream
  std::string data_sha256;        ///< of the shard set's content
  std::string layout;  ///< canonical JSON: name, offset and size of every parameter in the flat buffers
  nlohmann::json watchdog;  ///< of LossWatchdog; or null
};

/// The layout text of a model.
std::string DescribeLayout(const FlatParameters& parameters);

void WriteTrainState(const std::string& path, const TrainState& state);
/// \throws Error{kBadInput} on another schema, a missing field, an accumulation phase other than 0 or counts
/// that contradict each other; Error{kIo}
TrainState ReadTrainState(const std::string& path);

struct SavedCheckpoint {
  std::string path;
  std::string weights_sha256;  ///< of model.safetensors, as sha256sum prints it
  uint64_t size_bytes = 0;
};

/// Writes the checkpoint of state.trainer.step into the run and points `latest` at it; then keeps the newest
/// `keep`. A crash or a failure at any moment leaves the checkpoints that were there. \param provenance goes
/// into metadata.json   \throws Error{kIo} naming the file, and the checkpoint that is left
SavedCheckpoint SaveCheckpoint(RunDirectory* run, const LanguageModel& model,
                               const TokenizerIdentity& tokenizer, const TrainState& state,
                               const nlohmann::ordered_json& provenance, int64_t keep);

/// Checks every file of a checkpoint folder against its metadata.json. \throws Error{kBadInput, kIo}
void VerifyCheckpoint(const std::string& path);

/// The checkpoint that `latest` of a run directory names or, when that one does not verify, the newest that
/// does; each one passed over is a warning. Empty when the run has no checkpoint. \throws Error{kBadInput}
/// when it has some but none verifies
std::string NewestGoodCheckpoint(const RunDirectory& run);

}  // namespace trainwright
