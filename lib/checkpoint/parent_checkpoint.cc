#include "lib/checkpoint/parent_checkpoint.h"

#include <filesystem>
#include <vector>

#include "lib/base/error.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/checkpoint_metadata.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

std::string MetadataPath(const std::string& checkpoint) {
  return checkpoint + "/" + kCheckpointMetadataFile;
}

/// Of a checkpoint that has been checked against its metadata.json, which holds them.
void SetHashes(ParentCheckpoint* parent) {
  parent->weights_sha256 = SavedAt(parent->checkpoint).weights_sha256;
  ReadCheckpointMetadata(parent->checkpoint)
      .at("files")
      .at(kStateFileName)
      .at("sha256")
      .get_to(parent->state_sha256);
}

std::string NewestIn(const std::string& run) {
  const std::string checkpoint = NewestGoodCheckpoint(run);
  if (checkpoint.empty()) throw Error(ErrorCode::kIo, run, "has no checkpoint to begin with");
  return checkpoint;
}

std::string FindIn(const BranchReference& reference) {
  const std::string& run = reference.run;
  if (!reference.step && fs::exists(MetadataPath(run))) {
    const std::string checkpoint = fs::canonical(run).string();  // a link moves on while its run trains
    RequireResumable(checkpoint);
    return checkpoint;
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
  RequireResumable(checkpoint);
  return checkpoint;
}

}  // namespace

ParentCheckpoint FindParentCheckpoint(const BranchReference& reference) {
  const std::string checkpoint = FindIn(reference);
  ParentCheckpoint parent = {.run = reference.run, .checkpoint = fs::canonical(checkpoint).string()};
  SetHashes(&parent);
  return parent;
}

void RequireParentCheckpoint(const ParentCheckpoint& parent) {
  if (!fs::exists(MetadataPath(parent.checkpoint))) {
    throw Error(ErrorCode::kIo, parent.checkpoint, "is gone, and the branch has no checkpoint of its own yet",
                "", "bring it back, or branch from another checkpoint with another --out");
  }
  RequireResumable(parent.checkpoint);
  ParentCheckpoint found = parent;
  SetHashes(&found);
  if (found == parent) return;
  throw Error(ErrorCode::kBadInput, parent.checkpoint, "is not the checkpoint that the branch began with", "",
              "branch from it again with another --out");
}

}  // namespace trainwright
