/// run.json of a run directory: what the run is, on disk before its first step. A run that was stopped
/// before its first checkpoint goes on from it; a run that was extended has its present length there, and one
/// whose steps are divided otherwise than in its last checkpoint how they are now.
///
///   {"schema": "trainwright.run/1", "plan": {...}, "model_name": "llama-1m", "model": {...},
///    "init": "path", "data_sha256": "hex", "order_fingerprint": "hex", "working_directory": "path",
///    "parent": {"run": "path", "step": n, "checkpoint": "path", "weights_sha256": "hex",
///               "state_sha256": "hex"},
///    "device_choices": {...}}
///
/// plan as in trainwright_state.safetensors, model as config.json; init is empty for random weights; parent
/// is there for a branch: the checkpoint that the run began with; device_choices (lib/spec/device_choices.h)
/// where there are any. For a
/// moment there may be "options", too: lib/run/run_memory.h.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lib/run/train_plan.h"
#include "lib/spec/device_choices.h"

namespace trainwright {

/// The checkpoint that a branch began with.
struct ParentCheckpoint {
  std::string run;  ///< as --branch-from named it
  int64_t step = 0;
  std::string checkpoint;  ///< absolute, without links
  std::string weights_sha256, state_sha256;
  bool operator==(const ParentCheckpoint&) const = default;
};

struct RunRecord {
  TrainPlan plan;
  std::string model_name;        ///< as --model names it
  nlohmann::ordered_json model;  ///< config.json
  std::string init;              ///< as --init named it
  std::string data_sha256, order_fingerprint;
  std::string working_directory;  ///< that relative paths of the options start from
  std::optional<ParentCheckpoint> parent;
  DeviceChoices choices = {};
};

/// The same record gives the same text.
/// \throws nlohmann::json::type_error on a path that is not UTF-8
nlohmann::ordered_json EncodeRunRecord(const RunRecord& record);
std::string RunRecordText(const nlohmann::ordered_json& encoded);
/// Replaces the file that is there.
/// \throws Error{kIo}
void WriteRunRecord(const std::string& path, const RunRecord& record);
/// With the choices of GEMM kernels that runs of before had in a file of their own beside it.
/// \returns nullopt where there is no such file: a run of before there was one
/// \throws Error{kBadInput} on a file that holds something else; Error{kIo}
std::optional<RunRecord> ReadRunRecord(const std::string& path);
/// Replaces the choices of the record that is there.
/// \throws as ReadRunRecord and WriteRunRecord
void StoreDeviceChoices(const std::string& path, const DeviceChoices& choices);
/// Replaces the plan of the record that is there.
/// \throws as StoreDeviceChoices
void StorePlan(const std::string& path, const TrainPlan& plan);

}  // namespace trainwright
