#include "lib/train/checkpointer.h"

#include <ATen/ops/empty.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <vector>

#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/version.h"
#include "lib/formats/safetensors.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/model/checkpoint_metadata.h"
#include "lib/model/hf_folder.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

constexpr char kStateSchema[] = "trainwright.state/2", kFirstStateSchema[] = "trainwright.state/1";
constexpr char kMetadataSchema[] = "trainwright.checkpoint/1";
constexpr char kWeightsName[] = "model.safetensors";

ByteSpan BytesOf(const at::Tensor& tensor) {
  return {static_cast<const uint8_t*>(tensor.const_data_ptr()), tensor.nbytes()};
}

at::Tensor ReadMoments(const SafetensorsHeader& header, ByteSpan file, const std::string& name,
                       const std::string& path) {
  const SafetensorsEntry* entry = header.Find(name);
  if (entry == nullptr || entry->dtype != "F32" || entry->shape.size() != 1) {
    throw Error(ErrorCode::kBadInput, path, "has no one-dimensional F32 tensor '" + name + "'");
  }
  at::Tensor tensor = at::empty(entry->shape, at::TensorOptions().dtype(at::kFloat));
  std::memcpy(tensor.mutable_data_ptr(), file.data() + header.data_offset + entry->begin,
              entry->end - entry->begin);
  return tensor;
}

/// Refuses counts that no run can have. \throws Error{kBadInput}
void CheckCounts(const TrainState& state, const std::string& path) {
  const TrainerState& trainer = state.trainer;
  const auto require = [&](bool holds, const std::string& problem) {
    if (!holds) throw Error(ErrorCode::kBadInput, path, "its training state contradicts itself: " + problem);
  };
  require(trainer.step >= 0 && trainer.step <= state.plan.schedule.total_steps,
          "step " + std::to_string(trainer.step) + " of " +
              std::to_string(state.plan.schedule.total_steps));
  require(trainer.updates >= 0 && trainer.updates <= trainer.step,
          std::to_string(trainer.updates) + " updates in " + std::to_string(trainer.step) + " steps");
  require(trainer.scaler.skipped_steps >= 0 && trainer.updates + trainer.scaler.skipped_steps <= trainer.step,
          std::to_string(trainer.scaler.skipped_steps) + " skipped steps beside " +
              std::to_string(trainer.updates) + " updates in " + std::to_string(trainer.step) + " steps");
  require(std::isfinite(trainer.scaler.scale) && trainer.scaler.scale >= 1 && trainer.scaler.good_steps >= 0,
          "loss scale " + std::to_string(trainer.scaler.scale));
  require(trainer.labels_seen >= 0 && trainer.labels_seen <= trainer.tokens_seen,
          std::to_string(trainer.labels_seen) + " labels of " + std::to_string(trainer.tokens_seen) +
              " tokens");
  require(trainer.exp_avg.numel() == trainer.exp_avg_sq.numel(), "moments of two sizes");
}

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

std::string Rfc3339Now() {
  const time_t now = time(nullptr);
  struct tm fields;
  gmtime_r(&now, &fields);
  char text[32];
  strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &fields);
  return text;
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

}  // namespace

std::string DescribeLayout(const FlatParameters& parameters) {
  nlohmann::json layout = nlohmann::json::array();
  for (const Parameter& parameter : parameters.all()) {
    layout.push_back({parameter.name, parameter.offset, parameter.size});
  }
  return layout.dump();
}

namespace {

/// Adds what 0.1.0 did not write: it saved between steps only, and had none of the later levers.
void CompleteFirstState(nlohmann::json* json) {
  const nlohmann::json later_levers = {
      {"decay_steps", 0}, {"cycle_momentum", false}, {"z_loss", 0}, {"label_smoothing", 0}, {"drop_last", false}};
  for (const auto& [name, off] : later_levers.items()) json->at("plan").emplace(name, off);
  json->emplace("accumulation_phase", 0);
  json->emplace("watchdog", nullptr);
  json->at("compute").emplace("attention", "auto");
}

}  // namespace

void WriteTrainState(const std::string& path, const TrainState& state) {
  const TrainerState& trainer = state.trainer;
  const nlohmann::ordered_json json = {
      {"schema", kStateSchema},
      {"plan", EncodePlan(state.plan)},
      {"step", trainer.step},
      {"updates", trainer.updates},
      {"tokens_seen", trainer.tokens_seen},
      {"labels_seen", trainer.labels_seen},
      {"accumulation_phase", 0},
      {"cursor",
       {{"epoch", trainer.cursor.epoch},
        {"window", trainer.cursor.window},
        {"sample", trainer.cursor.sample}}},
      {"loss_scaler",
       {{"scale", trainer.scaler.scale},
        {"good_steps", trainer.scaler.good_steps},
        {"skipped_steps", trainer.scaler.skipped_steps}}},
      {"order_fingerprint", state.order_fingerprint},
      {"data_sha256", state.data_sha256},
      {"watchdog", state.watchdog},
      {"compute",
       {{"device", state.compute.device},
        {"cpu_capability", state.compute.cpu_capability},
        {"torch_build", state.compute.torch_build},
        {"threads", state.compute.threads},
        {"attention", state.compute.attention}}},
  };
  const at::Tensor exp_avg = trainer.exp_avg.cpu().contiguous(),
                   exp_avg_sq = trainer.exp_avg_sq.cpu().contiguous();
  AtomicFileSink sink(path);
  WriteSafetensors(
      &sink,
      {{.name = "exp_avg", .dtype = "F32", .shape = {exp_avg.numel()}, .data = BytesOf(exp_avg)},
       {.name = "exp_avg_sq", .dtype = "F32", .shape = {exp_avg_sq.numel()}, .data = BytesOf(exp_avg_sq)}},
      {{"format", "trainwright"}, {"state", json.dump()}, {"layout", state.layout}});
  sink.Commit();
}

TrainState ReadTrainState(const std::string& path) {
  const MappedFile file(path);
  const SafetensorsHeader header = ParseSafetensors(file.bytes(), path);
  TrainState state;
  const auto text = header.metadata.find("state");
  const auto layout = header.metadata.find("layout");
  if (text == header.metadata.end() || layout == header.metadata.end()) {
    throw Error(ErrorCode::kBadInput, path, "holds no training state");
  }
  state.layout = layout->second;
  try {
    nlohmann::json json = nlohmann::json::parse(text->second);
    if (json.at("schema") == kFirstStateSchema) {
      CompleteFirstState(&json);
    } else if (json.at("schema") != kStateSchema) {
      throw Error(ErrorCode::kBadInput, path, "has the unknown schema " + json.at("schema").dump(),
                  "this version reads " + std::string(kStateSchema) + " and " + kFirstStateSchema,
                  "resume with the version that wrote it (see version in its metadata.json)");
    }
    if (json.at("accumulation_phase") != 0) {
      throw Error(ErrorCode::kBadInput, path,
                  "was saved within a step, after " + json.at("accumulation_phase").dump() +
                      " micro-batches; this version continues between steps only");
    }
    state.plan = DecodePlan(json.at("plan"), path);
    TrainerState& trainer = state.trainer;
    json.at("step").get_to(trainer.step);
    json.at("updates").get_to(trainer.updates);
    json.at("tokens_seen").get_to(trainer.tokens_seen);
    json.at("labels_seen").get_to(trainer.labels_seen);
    json.at("cursor").at("epoch").get_to(trainer.cursor.epoch);
    json.at("cursor").at("window").get_to(trainer.cursor.window);
    json.at("cursor").at("sample").get_to(trainer.cursor.sample);
    json.at("loss_scaler").at("scale").get_to(trainer.scaler.scale);
    json.at("loss_scaler").at("good_steps").get_to(trainer.scaler.good_steps);
    json.at("loss_scaler").at("skipped_steps").get_to(trainer.scaler.skipped_steps);
    json.at("order_fingerprint").get_to(state.order_fingerprint);
    json.at("data_sha256").get_to(state.data_sha256);
    state.watchdog = json.at("watchdog");
    if (!state.watchdog.is_null() && !state.watchdog.is_object()) {
      throw Error(ErrorCode::kBadInput, path, "its watchdog is no object");
    }
    json.at("compute").at("device").get_to(state.compute.device);
    json.at("compute").at("cpu_capability").get_to(state.compute.cpu_capability);
    json.at("compute").at("torch_build").get_to(state.compute.torch_build);
    json.at("compute").at("threads").get_to(state.compute.threads);
    json.at("compute").at("attention").get_to(state.compute.attention);
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kBadInput, path,
                std::string("its training state cannot be read: ") + error.what());
  }
  state.trainer.exp_avg = ReadMoments(header, file.bytes(), "exp_avg", path);
  state.trainer.exp_avg_sq = ReadMoments(header, file.bytes(), "exp_avg_sq", path);
  CheckCounts(state, path);
  return state;
}

SavedCheckpoint SaveCheckpoint(RunDirectory* run, const LanguageModel& model,
                               const TokenizerIdentity& tokenizer, const TrainState& state,
                               const nlohmann::ordered_json& provenance, int64_t keep) {
  SavedCheckpoint saved;
  const int64_t step = state.trainer.step;
  bool written = false;
  try {
    const std::string folder = run->BeginCheckpoint(step);
    WriteHfFolder(folder, model, tokenizer);
    WriteTrainState(folder + "/" + kStateFileName, state);
    std::map<std::string, nlohmann::ordered_json> files;  // sorted by name
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      const std::string sha256 = Sha256OfFile(entry.path().string());
      const uint64_t size_bytes = fs::file_size(entry.path());
      files[name] = {{"size_bytes", size_bytes}, {"sha256", sha256}};
      saved.size_bytes += size_bytes;
      if (name == kWeightsName) saved.weights_sha256 = sha256;
    }
    const nlohmann::ordered_json metadata = {
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
