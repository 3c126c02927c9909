#include "lib/train/checkpointer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/utc_time.h"
#include "lib/base/version.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/model/hf_folder.h"
#include "lib/model/peft_folder.h"
#include "lib/run/checkpoint_metadata.h"

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

std::string DescribeMatrices(const FlatParameters& parameters, const std::vector<OptimizerState>& states) {
  nlohmann::json matrices = nlohmann::json::array();
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.trainable && parameter.shape.size() == 2)
      matrices.push_back({parameter.offset, parameter.shape[0], parameter.shape[1]});
  }
  nlohmann::json by_state = nlohmann::json::object();
  for (const OptimizerState& state : states) {
    if (state.value.sizes() == parameters.values().sizes()) by_state[state.name] = matrices;
  }
  return by_state.dump();
}

CheckpointContent DescribeCheckpoint(const LanguageModel& model, const WeightsOutput& weights,
                                     const TokenizerIdentity& tokenizer, TrainState state,
                                     const nlohmann::ordered_json& provenance,
                                     const CheckpointOptions& options) {
  CheckpointContent content;
  content.step = state.trainer.step;
  content.metadata = {{"resumable", !options.model_only}, {"provenance", provenance}};
  std::vector<std::string> compressed;
  const bool adapters = model.parameters().adapters() != nullptr;
  if (weights.compress && !adapters) compressed.push_back(kWeightsName);
  if (options.state.on && !options.model_only) compressed.push_back(kStateFileName);
  if (!compressed.empty()) content.metadata["compressed_files"] = compressed;
  content.parts.push_back(
      [&model, weights, &tokenizer, adapters, base_model = options.base_model](const std::string& folder) {
        if (adapters) {
          WritePeftFolder(folder, model, base_model, weights.values);
        } else {
          WriteHfFolder(folder, model, tokenizer, weights);
        }
      });
  if (options.model_only) return content;
  content.parts.push_back([state = std::move(state), compression = options.state](const std::string& folder) {
    WriteTrainState(folder + "/" + kStateFileName, state, compression);
  });
  return content;
}

SavedCheckpoint WriteCheckpoint(RunDirectory* run, const CheckpointContent& content) {
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
      if (name == kWeightsName || name == kAdapterWeightsName) saved.weights_sha256 = sha256;
    }
    nlohmann::ordered_json metadata = {
        {"schema", kMetadataSchema}, {"tool", "train"}, {"version", TRAINWRIGHT_VERSION},
        {"step", content.step},      {"files", files},
    };
    metadata.update(content.metadata);
    metadata["volatile"].push_back("saved_at");
    metadata["volatile"].push_back("host");
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
  return saved;
}

void ApplyRetention(RunDirectory* run, const Retention& retention, int64_t newest_step,
                    const CheckpointCopier* copier) {
  std::set<int64_t> spared = copier != nullptr ? copier->pinned() : std::set<int64_t>();
  // A copy that ends after this counts next time.
  const std::set<int64_t> copied =
      copier != nullptr && retention.delete_copied ? copier->copied() : std::set<int64_t>();
  std::vector<std::pair<double, int64_t>> evaluated;
  std::optional<int64_t> newest_resumable;
  for (const int64_t step : run->CheckpointSteps()) {
    if (step > newest_step) continue;
    const std::string path = run->CheckpointPath(step);
    if (fs::exists(path + "/" + kStateFileName)) newest_resumable = step;
    if (retention.best == 0) continue;
    try {
      const nlohmann::json metadata = ReadCheckpointMetadata(path);
      const auto validation = metadata.find("validation_metrics");
      if (validation == metadata.end() || !validation->is_object()) continue;
      const nlohmann::json loss = validation->value("eval_loss", nlohmann::json());
      if (loss.is_number()) evaluated.emplace_back(loss.get<double>(), step);
    } catch (const Error& error) {
      LogWarning(error.what());  // a broken one is none of the best
    }
  }
  if (retention.best > 0) {
    std::sort(evaluated.begin(), evaluated.end());
    for (size_t i = 0; i < evaluated.size() && i < static_cast<size_t>(retention.best); ++i) {
      spared.insert(evaluated[i].second);
    }
    run->PointBestAt(evaluated.empty() ? std::nullopt : std::optional(evaluated[0].second));
  }
  if (newest_resumable) spared.insert(*newest_resumable);
  run->RotateCheckpoints(retention.newest, newest_step, spared);
  for (const int64_t step : run->CheckpointSteps()) {
    if (step < newest_step && copied.contains(step) && !spared.contains(step)) run->DeleteCheckpoint(step);
  }
}

nlohmann::json ReadCheckpointMetadata(const std::string& path) {
  const std::string metadata_path = path + "/" + kCheckpointMetadataName;
  const std::vector<uint8_t> text = ReadWholeFile(metadata_path, uint64_t{64} << 20);
  try {
    nlohmann::json metadata = nlohmann::json::parse(text.begin(), text.end());
    if (metadata.at("schema") != kMetadataSchema) {
      throw Error(ErrorCode::kBadInput, metadata_path,
                  "has the unknown schema " + metadata.at("schema").dump());
    }
    return metadata;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kBadInput, metadata_path, std::string("cannot be read: ") + error.what());
  }
}

bool VerifyCheckpoint(const std::string& path) {
  const nlohmann::json metadata = ReadCheckpointMetadata(path);
  bool resumable = true;
  try {
    if (const auto field = metadata.find("resumable"); field != metadata.end()) field->get_to(resumable);
    const nlohmann::json& files = metadata.at("files");
    if (files.contains(kAdapterWeightsName)) {
      files.at(kAdapterConfigName);
    } else {
      for (const char* needed : {kWeightsName, "config.json"}) files.at(needed);
    }
    if (resumable) metadata.at("files").at(kStateFileName);
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kBadInput, path + "/" + kCheckpointMetadataName,
                std::string("cannot be read: ") + error.what());
  }
  VerifyCheckpointFiles(path);
  return resumable;
}

std::string NewestGoodCheckpoint(const RunDirectory& run) {
  const std::vector<int64_t> steps = run.CheckpointSteps();
  std::string model_only;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const std::string path = run.CheckpointPath(*step);
    try {
      if (VerifyCheckpoint(path)) {
        std::error_code ignored;
        const fs::path latest = fs::read_symlink(run.path() + "/latest", ignored);
        if (ignored || (run.path() / latest).lexically_normal() != fs::path(path).lexically_normal()) {
          LogInfo("latest does not point to " + path + ", the newest checkpoint to continue from");
        }
        return path;
      }
      if (model_only.empty()) model_only = path;
      LogWarning(path + " holds the model alone; trying an older checkpoint");
    } catch (const Error& error) {
      LogWarning(std::string(error.what()) + "; trying an older checkpoint");
    }
  }
  if (!model_only.empty()) {
    throw Error(
        ErrorCode::kUsage, model_only,
        "holds the model alone, as --save-model-only writes it: without optimizer and data position no "
        "run continues from it",
        "", "start another run from its weights: train --init " + model_only + " --out DIR");
  }
  if (!steps.empty()) {
    throw Error(ErrorCode::kBadInput, run.path(), "none of its checkpoints is whole", "",
                "start another run with --out");
  }
  return "";
}

}  // namespace trainwright
