#include "lib/checkpoint/checkpoint.h"

#include <sys/stat.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/shell_word.h"
#include "lib/base/version.h"
#include "lib/checkpoint/checkpoint_metadata.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_source.h"
#include "lib/spec/model_files.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

Error HoldsModelAlone(const std::string& checkpoint, const std::string& writer = "--save-model-only writes") {
  return Error(ErrorCode::kUsage, checkpoint,
               "holds the model alone, as " + writer +
                   " it: without optimizer and data position "
                   "no run continues from it",
               "",
               "start another run from its weights: train --init " + ShellWord(checkpoint) + " --out DIR");
}

}  // namespace

SavedCheckpoint WriteCheckpoint(RunDirectory* run, const CheckpointContent& content) {
  SavedCheckpoint saved;
  saved.step = content.step;
  bool written = false;
  try {
    const std::string folder = run->BeginCheckpoint(content.step);
    for (const auto& write_part : content.parts) write_part(folder);
    nlohmann::ordered_json files = DescribeFiles(folder);
    for (const auto& [name, fields] : content.models) WriteInnerMetadata(folder, name, fields, &files);
    for (const auto& [name, entry] : files.items()) {
      saved.size_bytes += entry.at("size_bytes").get<uint64_t>();
      if (name == kWeightsFileName || name == kAdapterWeightsFileName)
        entry.at("sha256").get_to(saved.weights_sha256);
    }
    nlohmann::ordered_json metadata = {
        {"schema", kCheckpointSchema}, {"tool", "train"}, {"version", TRAINWRIGHT_VERSION},
        {"step", content.step},        {"files", files},
    };
    metadata.update(content.metadata);
    WriteFolderMetadata(folder, std::move(metadata));
    written = true;
    run->CommitCheckpoint(content.step);
  } catch (const Error& error) {
    const bool in_place = written && !run->has_begun();
    run->AbandonCheckpoint();
    if (in_place || error.code() != ErrorCode::kIo) throw;
    const std::vector<int64_t> steps = run->CheckpointSteps();
    throw Error(ErrorCode::kIo, error.object(), error.problem(),
                "step " + std::to_string(content.step) + " is not saved; " +
                    (steps.empty() ? "there is no checkpoint yet"
                                   : "the last checkpoint is " + run->CheckpointPath(steps.back())),
                error.hint());
  } catch (...) {
    run->AbandonCheckpoint();
    throw;
  }
  saved.path = run->CheckpointPath(content.step);
  return saved;
}

nlohmann::json ReadCheckpointMetadata(const std::string& path) {
  const std::string metadata_path = path + "/" + kCheckpointMetadataFile;
  const std::vector<uint8_t> text = ReadWholeFile(metadata_path, uint64_t{64} << 20);
  RefuseDeepJson(AsText(text), metadata_path);
  try {
    nlohmann::json metadata = nlohmann::json::parse(text.begin(), text.end());
    if (metadata.at("schema") == kModelSchema)
      throw HoldsModelAlone(path, "--merge, --average and --ema write");
    if (metadata.at("schema") != kCheckpointSchema) {
      throw Error(ErrorCode::kBadInput, metadata_path,
                  "has the unknown schema " + metadata.at("schema").dump());
    }
    return metadata;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kBadInput, metadata_path, std::string("cannot be read: ") + error.what());
  }
}

SavedCheckpoint SavedAt(const std::string& path) {
  const nlohmann::json metadata = ReadCheckpointMetadata(path);
  try {
    SavedCheckpoint saved = {
        .step = metadata.at("step").get<int64_t>(), .path = path, .weights_sha256 = {}, .size_bytes = 0};
    for (const auto& [name, entry] : metadata.at("files").items()) {
      saved.size_bytes += entry.at("size_bytes").get<uint64_t>();
      if (name == kWeightsFileName || name == kAdapterWeightsFileName)
        entry.at("sha256").get_to(saved.weights_sha256);
    }
    return saved;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kBadInput, path + "/" + kCheckpointMetadataFile,
                std::string("cannot be read: ") + error.what());
  }
}

bool VerifyCheckpoint(const std::string& path) {
  const nlohmann::json metadata = ReadCheckpointMetadata(path);
  bool resumable = true;
  try {
    if (const auto field = metadata.find("resumable"); field != metadata.end()) field->get_to(resumable);
    const nlohmann::json& files = metadata.at("files");
    if (files.contains(kAdapterWeightsFileName)) {
      files.at(kAdapterConfigFileName);
    } else {
      for (const char* needed : {kWeightsFileName, "config.json"}) files.at(needed);
    }
    if (resumable) metadata.at("files").at(kStateFileName);
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kBadInput, path + "/" + kCheckpointMetadataFile,
                std::string("cannot be read: ") + error.what());
  }
  VerifyCheckpointFiles(path);
  return resumable;
}

void RequireResumable(const std::string& path) {
  if (!VerifyCheckpoint(path)) throw HoldsModelAlone(path);
}

std::string NewestGoodCheckpoint(const std::string& run_path) {
  const std::vector<std::string> checkpoints = RunDirectory::CheckpointsIn(run_path);
  std::string model_only;
  for (auto path = checkpoints.rbegin(); path != checkpoints.rend(); ++path) {
    try {
      if (VerifyCheckpoint(*path)) {
        std::error_code ignored;
        const fs::path latest = fs::read_symlink(run_path + "/latest", ignored);
        if (ignored || (run_path / latest).lexically_normal() != fs::path(*path).lexically_normal()) {
          LogInfo("latest does not point to " + *path + ", the newest checkpoint to continue from");
        }
        return *path;
      }
      if (model_only.empty()) model_only = *path;
      LogWarning(*path + " holds the model alone; trying an older checkpoint");
    } catch (const Error& error) {
      LogWarning(std::string(error.what()) + "; trying an older checkpoint");
    }
  }
  if (!model_only.empty()) throw HoldsModelAlone(model_only);
  if (!checkpoints.empty()) {
    throw Error(ErrorCode::kBadInput, run_path, "none of its checkpoints is whole", "",
                "start another run with --out");
  }
  return "";
}

}  // namespace trainwright
