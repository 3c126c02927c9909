#include "lib/checkpoint/checkpoint_restore.h"

#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/checkpoint_copier.h"
#include "lib/run/metrics_log.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

/// What tells one run's checkpoints from another's, whatever was changed between its processes; null where
/// unknown.
nlohmann::json ModelOf(const std::string& checkpoint) {
  try {
    const nlohmann::json metadata = ReadCheckpointMetadata(checkpoint);
    const nlohmann::json provenance = metadata.value("provenance", nlohmann::json::object());
    return {{"model", provenance.value("model", nlohmann::json())},
            {"tokenizer_sha256", provenance.value("tokenizer_sha256", nlohmann::json())},
            {"init", provenance.value("init", nlohmann::json())}};
  } catch (const std::exception&) {
    return nullptr;
  }
}

nlohmann::json ModelOfRun(const RunDirectory& run) {
  for (const int64_t step : run.CheckpointSteps()) {
    if (const nlohmann::json model = ModelOf(run.CheckpointPath(step)); !model.is_null()) return model;
  }
  return nullptr;
}

int64_t StepOf(const RunDirectory& run, const std::string& checkpoint) {
  for (const int64_t step : run.CheckpointSteps()) {
    if (run.CheckpointPath(step) == checkpoint) return step;
  }
  return -1;
}

/// \returns whether the run now has the copy as a checkpoint to go on from
bool BringBack(const StoredCopy& copy, const nlohmann::json& model_of_run, RunDirectory* run) {
  const nlohmann::json model = ModelOf(copy.path);
  if (!model_of_run.is_null() && model != model_of_run) {
    LogWarning(copy.path + " is no copy of this run: it has another model");
    return false;
  }
  try {
    const std::string folder = run->BeginCheckpoint(copy.step);
    RestoreCopy(copy.path, folder);
    if (!VerifyCheckpoint(folder)) {
      run->AbandonCheckpoint();
      LogWarning(copy.path + " holds the model alone; trying an older copy");
      return false;
    }
    run->CommitCheckpoint(copy.step);
  } catch (const Error& error) {
    run->AbandonCheckpoint();
    if (error.code() != ErrorCode::kBadInput) throw;
    LogWarning("the copy " + copy.path + " is damaged (" + error.what() + "); trying an older one");
    return false;
  }
  LogInfo("brought back " + run->CheckpointPath(copy.step) + " from its copy " + copy.path);
  return true;
}

/// A run whose copies are known is not begun anew by mistake.
void RefuseToForgetCopies(const RunDirectory& run) {
  if (!fs::exists(run.metrics_path())) return;
  std::optional<int64_t> step;
  std::string place;
  ForEachMetricsRecord(run.metrics_path(), [&](const nlohmann::ordered_json& record) {
    if (record.value("type", "") != "copy" || !record.value("copied", false)) return;
    if (step && record.at("step").get<int64_t>() < *step) return;
    step = record.at("step").get<int64_t>();
    place = record.at("place").get<std::string>();
  });
  if (!step) return;
  const bool is_folder = fs::path(place).filename().string().starts_with("step-");
  throw Error(
      ErrorCode::kBadInput, run.path(),
      "has no checkpoint left to continue from, but metrics.jsonl tells of copies, the newest of step " +
          std::to_string(*step) + (is_folder ? ": " + place : ", made by the command: " + place),
      "",
      is_folder ? "continue from it with --copy-to " + fs::path(place).parent_path().string() +
                      ", or start another run with --out"
                : "bring it back as " + run.CheckpointPath(*step) +
                      " and resume again, or start another run with --out");
}

}  // namespace

std::string NewestCheckpointOrCopy(RunDirectory* run, const std::string& copies) {
  std::string newest;
  std::exception_ptr problem;
  try {
    newest = NewestGoodCheckpoint(*run);
  } catch (const Error&) {
    problem = std::current_exception();
  }
  if (!copies.empty()) {
    const int64_t newest_step = StepOf(*run, newest);
    const nlohmann::json model = ModelOfRun(*run);
    for (const StoredCopy& copy : CopiesIn(copies)) {
      if (copy.step <= newest_step) break;
      if (BringBack(copy, model, run)) return run->CheckpointPath(copy.step);
    }
  }
  if (newest.empty()) RefuseToForgetCopies(*run);
  if (problem) std::rethrow_exception(problem);
  return newest;
}

}  // namespace trainwright
