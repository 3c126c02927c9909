#include "lib/checkpoint/finish_run.h"

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/checkpoint_records.h"
#include "lib/checkpoint/checkpoint_upkeep.h"
#include "lib/checkpoint/run_completion.h"
#include "lib/formats/tensorboard.h"
#include "lib/run/html_report.h"
#include "lib/run/metrics_log.h"
#include "lib/run/upkeep_records.h"

namespace trainwright {
namespace {

/// A record to be added: its type and fields.
using NewRecord = std::pair<std::string, nlohmann::ordered_json>;

/// Makes the copies that are missing.
/// \returns whether none is missing now
bool CopyAll(const RunDirectory& run, int64_t newest_step, const UpkeepRecords& records,
             const std::function<void()>& look, CheckpointCopier* copier, std::vector<NewRecord>* added) {
  QueueCopies(run, newest_step, records, /*compares_all=*/true, copier);
  copier->Finish(look);
  for (const CopyResult& result : copier->TakeResults()) {
    if (!result.copied) LogWarning("no copy of step " + std::to_string(result.step) + ": " + result.problem);
    if (records.copies.contains({result.step, result.place})) continue;
    added->emplace_back("copy", CopyRecord(result));
  }
  return copier->missing().empty();
}

/// Whether complete.json says that the run ended with this step. One that cannot be read, or says something
/// else, says nothing, and is written again.
bool IsComplete(const RunDirectory& run, int64_t step) {
  try {
    const nlohmann::ordered_json completion = ReadRunCompletion(run.path());
    return completion.is_object() && completion.at("steps") == step;
  } catch (const Error& error) {
    LogWarning(std::string(error.what()) + "; it is written again");
    return false;
  }
}

}  // namespace

void TakeUpRun(int64_t step, bool evaluated, RunDirectory* run) {
  RemoveRunCompletion(*run);
  CutMetrics(run->metrics_path(), step, evaluated);
  CutEventFiles(run->tensorboard_path(), step, evaluated ? "" : kEvaluationTag);
  run->PointLatestAt(step);
  const UpkeepRecords records = ReadUpkeepRecords(run->metrics_path());
  if (!records.begun || records.checkpoints.contains(step)) return;
  MetricsLog(run->metrics_path())
      .Write("checkpoint", CheckpointRecord(SavedAt(run->CheckpointPath(step)), std::nullopt));
}

int FinishRun(const RunEnd& end, const TrainSettings& settings, RunDirectory* run,
              const std::function<void()>& look) {
  run->PointLatestAt(end.step);
  const UpkeepRecords records = ReadUpkeepRecords(run->metrics_path());
  std::vector<NewRecord> added;
  if (!records.checkpoints.contains(end.step)) {
    added.emplace_back("checkpoint", CheckpointRecord(SavedAt(run->CheckpointPath(end.step)), std::nullopt));
  }
  const std::unique_ptr<CheckpointCopier> copier = MakeCopier(settings, *run, run->CheckpointSteps().size());
  const bool copied = copier == nullptr || CopyAll(*run, end.step, records, look, copier.get(), &added);
  const bool ended = records.EndedWell(end.reason), writes = records.begun && (!added.empty() || !ended);
  if (writes) {
    CutMetrics(run->metrics_path(), end.step);  // run_end comes last
    MetricsLog log(run->metrics_path());
    for (const auto& [type, fields] : added) log.Write(type, fields);
  }
  if (copier) copier->MarkRecorded();
  const bool complete = IsComplete(*run, end.step);
  // Of a run that is complete all is deleted but what has its copy only now; of others, what is to be copied
  // stays until it is.
  if (ended && complete ? settings.delete_after_copy : copied) {
    ApplyRetention(run, RetentionOf(settings), end.step, copier.get());
  }
  const int status = copied ? 0 : static_cast<int>(ErrorCode::kIo);
  if (writes) {
    const std::string reason = end.reason + (copied ? "" : ", but copies of checkpoints are missing");
    MetricsLog(run->metrics_path())
        .Write("run_end", ended ? records.end : records.EndFields(end.step, end.tokens_seen, status, reason));
  }
  if (records.begun && (!complete || !added.empty())) WriteRunReports(run->path());
  if (copied && !complete) WriteRunCompletion(*run, end.step, end.reason);
  return status;
}

}  // namespace trainwright
