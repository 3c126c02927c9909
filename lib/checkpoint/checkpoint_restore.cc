#include "lib/checkpoint/checkpoint_restore.h"

#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/shell_word.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/checkpoint_copier.h"
#include "lib/run/metrics_log.h"
#include "lib/run/plan_codec.h"
#include "lib/run/resumed_plan.h"
#include "lib/run/run_record.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

/// What tells one run's checkpoints from another's, whatever was changed between its processes; null where
/// unknown.
nlohmann::json IdentityOf(const std::string& checkpoint) {
  try {
    const nlohmann::json metadata = ReadCheckpointMetadata(checkpoint);
    const nlohmann::json provenance = metadata.value("provenance", nlohmann::json::object());
    nlohmann::json identity;
    for (const char* name : {"model", "tokenizer_sha256", "init", "data_sha256", "parent"}) {
      identity[name] = provenance.value(name, nlohmann::json());
    }
    if (provenance.contains("plan")) {
      identity["plan"] = EncodeLastingPlan(DecodePlan(provenance.at("plan"), checkpoint));
    }
    return identity;
  } catch (const std::exception&) {
    return nullptr;
  }
}

/// By the run's own checkpoints and by its record, which is there before they are; empty where neither is.
nlohmann::json IdentityOfRun(const RunDirectory& run) {
  nlohmann::json identity = nlohmann::json::object();
  for (const int64_t step : run.CheckpointSteps()) {
    const nlohmann::json found = IdentityOf(run.CheckpointPath(step));
    if (found.is_null()) continue;
    identity = found;
    identity.erase("data_sha256");  // may change from one process to the next
    break;
  }
  if (const std::optional<RunRecord> record = ReadRunRecord(run.record_path())) {
    identity["model"] = record->model;
    identity["plan"] = EncodeLastingPlan(record->plan);
    identity["data_sha256"] = record->data_sha256;
    identity["parent"] = nullptr;
    if (const auto& parent = record->parent) {
      identity["parent"] = {{"step", parent->step},
                            {"weights_sha256", parent->weights_sha256},
                            {"state_sha256", parent->state_sha256}};
    }
  }
  return identity;
}

/// \returns in what a copy differs from the run; empty: in nothing that is known
std::string WhatDiffers(const nlohmann::json& copy, const nlohmann::json& run) {
  static constexpr std::pair<const char*, const char*> kNames[] = {
      {"model", "another model"},      {"tokenizer_sha256", "another tokenizer"},
      {"init", "other first weights"}, {"plan", "another plan (seed, learning rate, ...)"},
      {"data_sha256", "other data"},   {"parent", "another parent"}};
  for (const auto& [key, what] : kNames) {
    if (!run.contains(key)) continue;
    if (copy.is_null()) return what;
    if (copy.contains(key) && copy.at(key) != run.at(key)) return what;
  }
  return "";
}

/// \returns whether the run now has the copy as a checkpoint to go on from
bool BringBack(const StoredCopy& copy, const nlohmann::json& identity_of_run, RunDirectory* run) {
  if (const std::string other = WhatDiffers(IdentityOf(copy.path), identity_of_run); !other.empty()) {
    LogWarning(copy.path + " is no copy of this run: it has " + other);
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
      "has no checkpoint left to continue from, but metrics.jsonl mentions copies, the newest of step " +
          std::to_string(*step) + (is_folder ? ": " + place : ", made by the command: " + place),
      "",
      is_folder ? "continue from it with --copy-to " + ShellWord(fs::path(place).parent_path().string()) +
                      ", or start another run with --out"
                : "bring it back as " + run.CheckpointPath(*step) +
                      " and resume again, or start another run with --out");
}

}  // namespace

std::string NewestCheckpointOrCopy(RunDirectory* run, const std::string& copies) {
  std::string newest;
  std::exception_ptr problem;
  try {
    newest = NewestGoodCheckpoint(run->path());
  } catch (const Error&) {
    problem = std::current_exception();
  }
  if (!copies.empty()) {
    const int64_t newest_step = RunDirectory::StepOfCheckpoint(newest).value_or(-1);
    const nlohmann::json identity = IdentityOfRun(*run);
    for (const StoredCopy& copy : CopiesIn(copies)) {
      if (copy.step <= newest_step) break;
      if (BringBack(copy, identity, run)) return run->CheckpointPath(copy.step);
    }
  }
  if (newest.empty()) RefuseToForgetCopies(*run);
  if (problem) std::rethrow_exception(problem);
  return newest;
}

}  // namespace trainwright
