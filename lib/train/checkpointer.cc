#include "lib/train/checkpointer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <vector>

#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/utc_time.h"
#include "lib/base/version.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/model/checkpoint_metadata.h"
#include "lib/model/hf_folder.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

constexpr char kMetadataSchema[] = "trainwright.checkpoint/1";
constexpr char kWeightsName[] = "model.safetensors";

/// Reads in pieces: the pages of a mapped checkpoint would count as this process's memory.
std::string Sha256OfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> piece(size_t{1} << 20);
  Sha256 hash;
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0) {
    hash.Update(AsBytes({piece.data(), static_cast<size_t>(file.gcount())}));
  }
  if (!file.eof()) throw SystemError(path, "read", errno);
  return HexEncode(hash.Digest());
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

}  // namespace

std::string DescribeLayout(const FlatParameters& parameters) {
  nlohmann::json layout = nlohmann::json::array();
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.trainable) layout.push_back({parameter.name, parameter.offset, parameter.size});
  }
  return layout.dump();
}

std::string DescribeMatrices(const FlatParameters& parameters) {
  nlohmann::json matrices = nlohmann::json::array();
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.trainable && parameter.shape.size() == 2)
      matrices.push_back({parameter.offset, parameter.shape[0], parameter.shape[1]});
  }
  return nlohmann::json{{"exp_avg", matrices}, {"exp_avg_sq", matrices}}.dump();
}

SavedCheckpoint SaveCheckpoint(RunDirectory* run, const LanguageModel& model,
                               const TokenizerIdentity& tokenizer, const TrainState& state,
                               const nlohmann::ordered_json& provenance, int64_t keep,
                               const StateCompression& compression) {
  SavedCheckpoint saved;
  const int64_t step = state.trainer.step;
  bool written = false;
  try {
    const std::string folder = run->BeginCheckpoint(step);
    WriteHfFolder(folder, model, tokenizer);
    WriteTrainState(folder + "/" + kStateFileName, state, compression);
    std::map<std::string, nlohmann::ordered_json> files;  // sorted by name
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      const std::string sha256 = Sha256OfFile(entry.path().string());
      const uint64_t size_bytes = fs::file_size(entry.path());
      files[name] = {{"size_bytes", size_bytes}, {"sha256", sha256}};
      saved.size_bytes += size_bytes;
      if (name == kWeightsName) saved.weights_sha256 = sha256;
    }
    nlohmann::ordered_json metadata = {
        {"schema", kMetadataSchema},
        {"tool", "train"},
        {"version", TRAINWRIGHT_VERSION},
        {"step", step},
        {"files", files},
        {"provenance", provenance},
        {"volatile", {"saved_at", "host"}},
        {"saved_at", Rfc3339Now()},
        {"host", HostName()},
    };
    if (compression.on) metadata["compressed_files"] = {kStateFileName};
    WriteFileAtomically(folder + "/" + kCheckpointMetadataName, AsBytes(metadata.dump(2) + "\n"));
    written = true;
    run->CommitCheckpoint(step);
  } catch (const Error& error) {
    const bool in_place = written && !run->has_begun();
    run->AbandonCheckpoint();
    if (in_place || error.code() != ErrorCode::kIo) throw;
    const std::vector<int64_t> steps = run->CheckpointSteps();
    throw Error(ErrorCode::kIo, error.object(), error.problem(),
                "step " + std::to_string(step) + " is not saved; " +
                    (steps.empty() ? "there is no checkpoint yet"
                                   : "the last checkpoint is " + run->CheckpointPath(steps.back())),
                error.hint());
  } catch (...) {
    run->AbandonCheckpoint();
    throw;
  }
  saved.path = run->CheckpointPath(step);
  run->RotateCheckpoints(keep, step);
  return saved;
}

void VerifyCheckpoint(const std::string& path) {
  const std::string metadata_path = path + "/" + kCheckpointMetadataName;
  const std::vector<uint8_t> text = ReadWholeFile(metadata_path, uint64_t{64} << 20);
  nlohmann::json metadata;
  try {
    metadata = nlohmann::json::parse(text.begin(), text.end());
    if (metadata.at("schema") != kMetadataSchema) {
      throw Error(ErrorCode::kBadInput, metadata_path,
                  "has the unknown schema " + metadata.at("schema").dump());
    }
    for (const char* needed : {kWeightsName, kStateFileName, "config.json"}) metadata.at("files").at(needed);
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kBadInput, metadata_path, std::string("cannot be read: ") + error.what());
  }
  VerifyCheckpointFiles(path);
}

std::string NewestGoodCheckpoint(const RunDirectory& run) {
  std::vector<std::string> candidates;
  std::error_code ignored;
  const fs::path latest = fs::read_symlink(run.path() + "/latest", ignored);
  if (!ignored && fs::exists(run.path() / latest, ignored))
    candidates.push_back((run.path() / latest).string());
  const std::vector<int64_t> steps = run.CheckpointSteps();
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const std::string path = run.CheckpointPath(*step);
    if (std::find(candidates.begin(), candidates.end(), path) == candidates.end()) candidates.push_back(path);
  }
  for (const std::string& candidate : candidates) {
    try {
      VerifyCheckpoint(candidate);
      return candidate;
    } catch (const Error& error) {
      LogWarning(std::string(error.what()) + "; trying an older checkpoint");
    }
  }
  if (!candidates.empty()) {
    throw Error(ErrorCode::kBadInput, run.path(), "none of its checkpoints is whole", "",
                "start another run with --out");
  }
  return "";
}

}  // namespace trainwright
