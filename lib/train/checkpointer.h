/// A checkpoint: man/trainwright-checkpoint.5, version 2.
///
///   config.json, model.safetensors, tokenizer files   as Hugging Face transformers reads them, fp32 weights
///   trainwright_state.safetensors                     what else the next step depends on; no clock or path; plain,
///                                                     or as lib/codec/compressed_file.h
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
#include "lib/train/train_state.h"

namespace trainwright {

inline constexpr char kCheckpointMetadataName[] = "metadata.json";

/// The layout text of a model.
std::string DescribeLayout(const FlatParameters& parameters);
/// TrainState::matrices of a model: its two-dimensional parameters.
std::string DescribeMatrices(const FlatParameters& parameters);

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
                               const nlohmann::ordered_json& provenance, int64_t keep,
                               const StateCompression& compression = {});

/// Checks every file of a checkpoint folder against its metadata.json. \throws Error{kBadInput, kIo}
void VerifyCheckpoint(const std::string& path);

/// The checkpoint that `latest` of a run directory names or, when that one does not verify, the newest that
/// does; each one passed over is a warning. Empty when the run has no checkpoint. \throws Error{kBadInput}
/// when it has some but none verifies
std::string NewestGoodCheckpoint(const RunDirectory& run);

}  // namespace trainwright
