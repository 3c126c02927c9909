#include "lib/train/checkpointer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <utility>
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

CheckpointContent DescribeCheckpoint(const LanguageModel& model, const WeightsOutput& weights,
                                     const TokenizerIdentity& tokenizer, TrainState state,
                                     const nlohmann::ordered_json& provenance,
                                     const StateCompression& compression) {
  CheckpointContent content;
  content.step = state.trainer.step;
  content.metadata = {{"provenance", provenance}};
  if (compression.on) content.metadata["compressed_files"] = {kStateFileName};
  content.parts.push_back([&model, weights, &tokenizer](const std::string& folder) {
    WriteHfFolder(folder, model, tokenizer, weights);
  });
  content.parts.push_back([state = std::move(state), compression](const std::string& folder) {
    WriteTrainState(folder + "/" + kStateFileName, state, compression);
  });
  return content;
}

SavedCheckpoint WriteCheckpoint(RunDirectory* run, const CheckpointContent& content, int64_t keep) {
  SavedCheckpoint saved;
  saved.step = content.step;
  bool written = false;
  try {
    const std::string folder = run->BeginCheckpoint(content.step);
    for (const auto& write_part : content.parts) write_part(folder);
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
        {"step", content.step},
        {"files", files},
    };
    metadata.update(content.metadata);
    metadata["volatile"] = {"saved_at", "host"};
    metadata["saved_at"] = Rfc3339Now();
    metadata["host"] = HostName();
    WriteFileAtomically(folder + "/" + kCheckpointMetadataName, AsBytes(metadata.dump(2) + "\n"));
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
  run->RotateCheckpoints(keep, content.step);
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
