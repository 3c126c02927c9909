/// A checkpoint: man/trainwright-checkpoint.5, version 2.
///
///   config.json, model.safetensors, tokenizer files   as Hugging Face transformers reads them, fp32 weights
///   adapter_config.json, adapter_model.safetensors    instead of these, of a run that trains adapters: as
///                                                     peft reads them
///   trainwright_state.safetensors                     what else the next step depends on; no clock or
///                                                     path; plain, or as lib/codec/compressed_file.h
///   metadata.json                                     sha256 of every file, provenance, volatile facts
///
/// Checkpoints are made between optimizer steps only, so no gradients are kept, and the state says so
/// (accumulation phase 0). Random numbers have no state but the plan's seed and the cursor (lib/base/rng.h).
/// metadata.json is written last, so a folder without it, or one whose files do not match it, is no
/// checkpoint.
///
/// Here is what a checkpoint is and how it is written and found, free of torch: what its files hold comes in
/// as the parts of a CheckpointContent (lib/train/checkpoint_parts.h). Beside it: the background
/// (checkpoint_writer.h), which ones stay (retention.h), copies (checkpoint_copier.h, checkpoint_restore.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/run/run_directory.h"

namespace trainwright {

/// What a run resumes from; the model's own files are named in lib/spec/model_files.h.
inline constexpr char kStateFileName[] = "trainwright_state.safetensors";

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
  /// Of the folders in it that are models of their own, by name: fields of their metadata.json.
  std::map<std::string, nlohmann::ordered_json> models = {};
};

/// Writes a checkpoint into the run and points `latest` at it. A crash or a failure at any moment leaves the
/// checkpoints that were there.
/// \throws Error{kIo} naming the file, and the checkpoint that is left
SavedCheckpoint WriteCheckpoint(RunDirectory* run, const CheckpointContent& content);

/// What WriteCheckpoint returned of a checkpoint, from its metadata.json.
/// \throws Error{kBadInput, kIo}
SavedCheckpoint SavedAt(const std::string& path);

/// Checks every file of a checkpoint folder against its metadata.json.
/// \returns whether a run can resume from it: false for a model alone
/// \throws Error{kBadInput, kIo}
bool VerifyCheckpoint(const std::string& path);
/// The same of a checkpoint that a run is to go on from.
/// \throws Error{kUsage} on a model alone; Error{kBadInput, kIo}
void RequireResumable(const std::string& path);
/// metadata.json of a checkpoint.
/// \throws Error{kBadInput, kIo}
nlohmann::json ReadCheckpointMetadata(const std::string& path);

/// The checkpoint of the highest step in a run directory that verifies and holds a state, whatever `latest`
/// points to; each one skipped is a warning. Empty when the run has no checkpoint. Reads only: the run
/// may be training.
/// \throws Error{kBadInput} when it has some but none verifies, Error{kUsage} when those that do hold the
///     model alone
std::string NewestGoodCheckpoint(const std::string& run_path);

}  // namespace trainwright
