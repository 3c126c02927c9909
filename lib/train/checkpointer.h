/// A checkpoint: man/trainwright-checkpoint.5, version 2.
///
///   config.json, model.safetensors, tokenizer files   as Hugging Face transformers reads them, fp32 weights
///   adapter_config.json, adapter_model.safetensors    instead of these, of a run that trains adapters: as
///   peft
///                                                     reads them
///   trainwright_state.safetensors                     what else the next step depends on; no clock or path;
///   plain,
///                                                     or as lib/codec/compressed_file.h
///   metadata.json                                     sha256 of every file, provenance, volatile facts
///
/// Checkpoints are made between optimizer steps only, so no gradients are kept, and the state says so
/// (accumulation phase 0). Random numbers have no state but the plan's seed and the cursor (lib/base/rng.h).
/// metadata.json is written last, so a folder without it, or one whose files do not match it, is no
/// checkpoint.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/formats/tokenizer_identity.h"
#include "lib/model/language_model.h"
#include "lib/model/weights_io.h"
#include "lib/run/checkpoint_copier.h"
#include "lib/run/run_directory.h"
#include "lib/train/train_state.h"

namespace trainwright {

inline constexpr char kCheckpointMetadataName[] = "metadata.json";

/// The layout text of a model.
std::string DescribeLayout(const FlatParameters& parameters);
/// TrainState::matrices of a model: its two-dimensional parameters, in each state that is laid out as they are.
std::string DescribeMatrices(const FlatParameters& parameters, const std::vector<OptimizerState>& states);

struct SavedCheckpoint {
  int64_t step = 0;
  std::string path;
  std::string weights_sha256;  ///< of model.safetensors or adapter_model.safetensors, as sha256sum prints it
  uint64_t size_bytes = 0;
};

/// What a checkpoint consists of. Nothing of it is read before WriteCheckpoint.
struct CheckpointContent {
  int64_t step = 0;
  /// Each writes one or more files into a folder, each atomically.
  /// \throws Error
  std::vector<std::function<void(const std::string& folder)>> parts;
  nlohmann::ordered_json metadata;  ///< fields of metadata.json besides those of every checkpoint
};

/// Which checkpoints of a run stay.
struct Retention {
  int64_t newest = 3;  ///< 0: all
  int64_t best =
      0;  ///< besides these, of the lowest evaluation loss of their own; `best` points at the first
  /// Whether those that have a copy go, but for the best and the newest that a run resumes from.
  bool delete_copied = false;
};

/// Writes a checkpoint into the run and points `latest` at it. A crash or a failure at any moment leaves the
/// checkpoints that were there.
/// \throws Error{kIo} naming the file, and the checkpoint that is left
SavedCheckpoint WriteCheckpoint(RunDirectory* run, const CheckpointContent& content);

/// Deletes the checkpoints that do not stay.
/// \param newest_step the one just written
/// \param copier null: no copies are made. What waits for its copy stays.
/// \throws Error{kIo}
void ApplyRetention(RunDirectory* run, const Retention& retention, int64_t newest_step,
                    const CheckpointCopier* copier = nullptr);

struct CheckpointOptions {
  StateCompression state;
  bool model_only = false;  ///< without the state: no run resumes from it
  /// Of a model with adapters: the folder of its base, which adapter_config.json names.
  std::string base_model = {};
};

/// The content of a run's checkpoint after state.trainer.step. What it refers to must outlive its writing.
/// \param weights where it has values, another thread may train the model meanwhile
/// \param provenance goes into metadata.json
CheckpointContent DescribeCheckpoint(const LanguageModel& model, const WeightsOutput& weights,
                                     const TokenizerIdentity& tokenizer, TrainState state,
                                     const nlohmann::ordered_json& provenance,
                                     const CheckpointOptions& options = {});

/// Checks every file of a checkpoint folder against its metadata.json.
/// \returns whether a run can resume from it: false for a model alone
/// \throws Error{kBadInput, kIo}
bool VerifyCheckpoint(const std::string& path);
/// metadata.json of a checkpoint.
/// \throws Error{kBadInput, kIo}
nlohmann::json ReadCheckpointMetadata(const std::string& path);

/// The checkpoint of the highest step in the run directory that verifies and holds a state, whatever `latest`
/// points to; each one passed over is a warning. Empty when the run has no checkpoint.
/// \throws Error{kBadInput} when it has some but none verifies, Error{kUsage} when those that do hold the
///     model alone
std::string NewestGoodCheckpoint(const RunDirectory& run);

}  // namespace trainwright
