#include "lib/checkpoint/parent_checkpoint.h"

#include <filesystem>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/spec/model_files.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

constexpr char kMetadataFile[] = "/metadata.json";

/// \throws Error{kUsage} on a model alone; what VerifyCheckpoint throws
void RequireState(const std::string& checkpoint) {
  if (VerifyCheckpoint(checkpoint)) return;
  throw Error(ErrorCode::kUsage, checkpoint, "holds the model alone, without the optimizer's states", "",
              "start from its weights: train --init " + checkpoint);
}

/// Of a checkpoint that has been checked against its metadata.json, which holds them.
void SetHashes(ParentCheckpoint* parent) {
  const nlohmann::json files = ReadCheckpointMetadata(parent->checkpoint).at("files");
  for (const char* weights : {kWeightsFileName, kAdapterWeightsFileName}) {
    if (files.contains(weights)) parent->weights_sha256 = files.at(weights).at("sha256").get<std::string>();
  }
  parent->state_sha256 = files.at(kStateFileName).at("sha256").get<std::string>();
}

std::string NewestIn(const std::string& run) {
  const std::vector<int64_t> steps = RunDirectory::CheckpointStepsIn(run);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const std::string checkpoint = RunDirectory::CheckpointPathIn(run, *step);
    try {
      RequireState(checkpoint);
      return checkpoint;
    } catch (const Error& error) {
      if (std::next(step) == steps.rend()) throw;
      LogWarning(std::string(error.what()) + "; trying an older checkpoint");
    }
  }
  throw Error(ErrorCode::kIo, run, "has no checkpoint to begin with");
}

std::string FindIn(const BranchReference& reference) {
  const std::string& run = reference.run;
  if (!reference.step && fs::exists(run + kMetadataFile)) {
    RequireState(run);
    return run;
  }
  if (!fs::is_directory(run + "/checkpoints")) {
    throw Error(ErrorCode::kIo, run, "is neither a run directory nor a checkpoint", "",
                "--branch-from takes RUN, RUN@STEP or the folder of a checkpoint");
  }
  if (!reference.step) return NewestIn(run);
  const std::string checkpoint = RunDirectory::CheckpointPathIn(run, *reference.step);
  if (!fs::exists(checkpoint)) {
    std::string steps;
    for (const int64_t step : RunDirectory::CheckpointStepsIn(run)) {
      steps += (steps.empty() ? "" : ", ") + std::to_string(step);
    }
    throw Error(ErrorCode::kIo, run, "has no checkpoint of step " + std::to_string(*reference.step), "",
                steps.empty() ? "it has none" : "it has those of steps " + steps);
  }
  RequireState(checkpoint);
  return checkpoint;
}

}  // namespace

ParentCheckpoint FindParentCheckpoint(const BranchReference& reference) {
  const std::string checkpoint = FindIn(reference);
  ParentCheckpoint parent = {.run = reference.run,
                             .checkpoint = fs::absolute(checkpoint).lexically_normal().string()};
  SetHashes(&parent);
  return parent;
}

void RequireParentCheckpoint(const ParentCheckpoint& parent) {
  const std::string metadata = parent.checkpoint + kMetadataFile;
  if (!fs::exists(metadata)) {
    throw Error(ErrorCode::kIo, parent.checkpoint, "is gone, and the branch has no checkpoint of its own yet",
                "", "bring it back, or branch from another checkpoint with another --out");
  }
  RequireState(parent.checkpoint);
  ParentCheckpoint found = parent;
  SetHashes(&found);
  if (found == parent) return;
  throw Error(ErrorCode::kBadInput, parent.checkpoint, "is not the checkpoint that the branch began with", "",
              "branch from it anew with another --out");
}

}  // namespace trainwright
