#include "lib/checkpoint/run_status.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/shell_word.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/run_completion.h"
#include "lib/io/folder_lock.h"
#include "lib/run/metrics_log.h"
#include "lib/run/run_directory.h"
#include "lib/run/run_record.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

const char* NameOf(RunState state) {
  switch (state) {
    case RunState::kComplete:
      return "complete";
    case RunState::kIncomplete:
      return "incomplete";
    case RunState::kDamaged:
      return "damaged";
    case RunState::kNone:
      return "none";
  }
  return "";
}

template <typename Value>
std::optional<Value> NumberOf(const nlohmann::json& object, const char* name) {
  if (!object.is_object()) return std::nullopt;
  const auto field = object.find(name);
  if (field == object.end() || !field->is_number()) return std::nullopt;
  return field->get<Value>();
}

/// The steps that the newest process was to take, of a run without a checkpoint.
std::optional<int64_t> PlannedSteps(const std::string& metrics_path) {
  std::optional<int64_t> total;
  if (!fs::exists(metrics_path)) return total;
  ForEachMetricsRecord(metrics_path, [&](const ordered_json& record) {
    if (record.value("type", ordered_json()) != "run_begin") return;
    total = NumberOf<int64_t>(record.value("plan", ordered_json()), "total_steps");
  });
  return total;
}

/// \throws Error{kIo} where that cannot be seen
bool IsRun(const std::string& path) {
  for (const char* name : {kRunOptionsFile, kRunRecordFile, kRunMetricsFile, kRunCompletionFile}) {
    const std::string file = path + "/" + name;
    std::error_code error;
    if (fs::exists(fs::status(file, error))) return true;
    if (error == std::errc::permission_denied) throw SystemError(file, "look for it", error.value());
  }
  return !RunDirectory::CheckpointsIn(path).empty();
}

/// Takes steps and loss of a checkpoint that is whole.
void TakeCheckpoint(const std::string& path, RunStatus* status) {
  VerifyCheckpoint(path);
  const nlohmann::json metadata = ReadCheckpointMetadata(path);
  status->steps = SavedAt(path).step;
  status->checkpoint = path;
  status->final_loss_nats = NumberOf<double>(metadata, "current_loss");
  status->total_steps =
      NumberOf<int64_t>(metadata.value("training_progress", nlohmann::json()), "total_steps");
}

void ReadComplete(const ordered_json& completion, RunStatus* status) {
  TakeCheckpoint(status->run + "/" + completion.at("checkpoint").get<std::string>(), status);
  if (status->steps != completion.at("steps").get<int64_t>()) {
    throw Error(ErrorCode::kBadInput, status->checkpoint,
                "is of another step than " + std::string(kRunCompletionFile) + " says");
  }
  status->state = RunState::kComplete;
}

/// \returns the steps that the record says, which may be more than those of the newest checkpoint's plan: the
///     run was made longer since; 0 without a record
/// \throws Error where --resume could not read what the run is: its record, and which checkpoints there are
int64_t RequireReadable(const std::string& run) {
  const std::optional<RunRecord> record = ReadRunRecord(run + "/" + kRunRecordFile);
  const std::string checkpoints = run + "/checkpoints";
  if (access(checkpoints.c_str(), R_OK | X_OK) != 0 && errno != ENOENT) {
    throw SystemError(checkpoints, "read the folder", errno);
  }
  return record ? record->plan.schedule.total_steps : 0;
}

void ReadIncomplete(RunStatus* status) {
  status->state = RunState::kIncomplete;
  const int64_t recorded_steps = RequireReadable(status->run);
  const std::vector<std::string> checkpoints = RunDirectory::CheckpointsIn(status->run);
  for (auto path = checkpoints.rbegin(); path != checkpoints.rend(); ++path) {
    try {
      TakeCheckpoint(*path, status);
      if (recorded_steps > status->total_steps.value_or(0)) status->total_steps = recorded_steps;
      return;
    } catch (const Error& error) {
      if (!fs::exists(*path)) continue;  // its run goes on, and has deleted it
      if (status->problem.empty()) status->problem = error.what();
    }
  }
  if (!status->problem.empty()) {
    status->state = RunState::kDamaged;
  } else {
    status->total_steps = PlannedSteps(status->run + "/" + kRunMetricsFile);
  }
}

}  // namespace

int RunStatus::exit_status() const {
  switch (state) {
    case RunState::kComplete:
      return 0;
    case RunState::kIncomplete:
      return 1;
    case RunState::kDamaged:
      return static_cast<int>(ErrorCode::kBadInput);
    case RunState::kNone:
      return static_cast<int>(ErrorCode::kIo);
  }
  return 0;
}

std::string RunStatus::Text() const {
  const std::string of = total_steps ? " of " + std::to_string(*total_steps) : "";
  switch (state) {
    case RunState::kComplete:
      return "complete: " + std::to_string(steps) + of + " steps, " + checkpoint;
    case RunState::kIncomplete:
      return std::string(running ? "running" : "not complete") + ": " + std::to_string(steps) + of +
             " steps" + (checkpoint.empty() ? ", no checkpoint yet" : ", " + checkpoint) +
             (problem.empty() ? "" : " (skipped: " + problem + ")") +
             (running ? "" : "; train --resume --out " + ShellWord(run) + " goes on");
    case RunState::kDamaged:
      return "damaged: " + problem + (hint.empty() ? "" : "; " + hint);
    case RunState::kNone:
      return "no run";
  }
  return "";
}

RunStatus ReadRunStatus(const std::string& run_path) {
  RunStatus status;
  status.run = run_path;
  while (status.run.size() > 1 && status.run.back() == '/') status.run.pop_back();
  try {
    status.running = IsFolderInUse(status.run);  // first: a process that ends meanwhile leaves a run
    if (!IsRun(status.run)) return status;
    const ordered_json completion = ReadRunCompletion(status.run);
    if (completion.is_object()) {
      ReadComplete(completion, &status);
    } else {
      ReadIncomplete(&status);
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadInput && error.code() != ErrorCode::kIo) throw;
    status.state = RunState::kDamaged;
    status.problem = error.what();
    status.hint = error.hint();
  }
  return status;
}

ordered_json EncodeRunStatus(const RunStatus& status) {
  const auto known = [](const auto& value) { return value ? ordered_json(*value) : ordered_json(nullptr); };
  const auto text = [](const std::string& value) {
    return value.empty() ? ordered_json(nullptr) : ordered_json(value);
  };
  return {{"schema", "trainwright.status/1"},
          {"run", status.run},
          {"state", NameOf(status.state)},
          {"running", status.running},
          {"steps", status.steps},
          {"total_steps", known(status.total_steps)},
          {"final_loss_nats", known(status.final_loss_nats)},
          {"checkpoint", text(status.checkpoint)},
          {"problem", text(status.problem)}};
}

}  // namespace trainwright
