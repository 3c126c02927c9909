#include "lib/train/saver.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/version.h"
#include "lib/checkpoint/async_save.h"
#include "lib/io/byte_sink.h"
#include "lib/io/process_memory.h"
#include "lib/run/save_interval.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

/// Null where no copies are asked for.
std::unique_ptr<CheckpointCopier> CopierOf(const TrainSettings& settings, const RunDirectory& run_directory) {
  if (settings.copy_to.empty() && settings.copy_command.empty()) return nullptr;
  if (!settings.copy_to.empty()) {
    std::error_code error;
    const fs::path target = fs::weakly_canonical(settings.copy_to, error),
                   run = fs::canonical(run_directory.path());
    if (std::mismatch(run.begin(), run.end(), target.begin(), target.end()).first == run.end()) {
      throw Error(ErrorCode::kUsage, "--copy-to",
                  settings.copy_to + " is in the run directory " + run_directory.path(), "",
                  "name a folder outside, best on another disk");
    }
  }
  return std::make_unique<CheckpointCopier>(
      CopySettings{.folder = settings.copy_to,
                   .command = settings.copy_command,
                   .compress = settings.copy_compress,
                   .retries = settings.copy_retries,
                   .timeout_s = ParseSaveInterval(settings.copy_timeout, "--copy-timeout").time_s,
                   .capacity = static_cast<size_t>(settings.copy_queue),
                   .writer = std::string("train ") + TRAINWRIGHT_VERSION});
}

Retention RetentionOf(const TrainSettings& settings) {
  return {.newest = settings.keep, .best = settings.keep_best, .delete_copied = settings.delete_after_copy};
}

}  // namespace

Saver::Saver(const TrainSettings& settings, std::chrono::steady_clock::time_point start, bool saves_between,
             RunDirectory* run, CheckpointSource* source, RunListener* listener)
    : async_save_(settings.async_save),
      saves_between_(saves_between),
      retention_(RetentionOf(settings)),
      run_(run),
      source_(source),
      listener_(listener),
      copier_(CopierOf(settings, *run)),
      saved_at_(start) {}

bool Saver::SavesInBackground() {
  if (background_) return *background_;
  if (async_save_ == "auto" && !saves_between_) return false;
  background_ = async_save_ == "on";
  const auto allocate = [&] {
    const std::vector<at::Tensor> live = source_->LiveTensors();
    for (size_t slot = 0; slot < live.size(); ++slot) snapshot_.Allocate(slot, live[slot]);
  };
  if (async_save_ == "on") allocate();
  if (async_save_ == "auto") {
    // By now the steps have what they need.
    int64_t size_bytes = 0;
    for (const at::Tensor& tensor : source_->LiveTensors())
      size_bytes += static_cast<int64_t>(tensor.nbytes());
    AsyncSaveChoice choice = ChooseAsyncSave(size_bytes, AvailableMemoryBytes());
    try {
      if (choice.background) allocate();
    } catch (const std::exception&) {  // a limit that the system's free memory does not tell
      snapshot_.Release();
      choice = {.background = false, .reason = "there is no memory for a copy of weights and moments"};
    }
    background_ = choice.background;
    if (!choice.background) listener_->Warn("checkpoints stall training: " + choice.reason);
  }
  return *background_;
}

std::vector<at::Tensor> Saver::Copy(const std::vector<at::Tensor>& live) {
  std::vector<at::Tensor> copies;
  for (size_t slot = 0; slot < live.size(); ++slot) copies.push_back(snapshot_.Copy(slot, live[slot]));
  return copies;
}

void Saver::Save(int64_t step) {
  if (saved_step_ == step) return;
  const auto start = std::chrono::steady_clock::now();
  FinishSave(/*wait=*/true);
  const bool background = SavesInBackground();
  writer_.Begin(background, start, [&]() -> CheckpointWriter::Write {
    const std::vector<at::Tensor> live = source_->LiveTensors();
    CheckpointContent content = source_->Describe(background ? Copy(live) : live, background);
    return [this, content = std::move(content), report = listener_->report()] {
      const SavedCheckpoint saved = WriteCheckpoint(run_, content);
      if (copier_) copier_->Add(saved.step, saved.path);
      ApplyRetention(run_, retention_, saved.step, copier_.get());
      WriteFileAtomically(run_->report_path(), AsBytes(report.Svg()));
      return saved;
    };
  });
  saved_step_ = step;
  saved_at_ = background ? start : std::chrono::steady_clock::now();
  if (!background) FinishSave(/*wait=*/true);
}

void Saver::FinishSave(bool wait) {
  const std::optional<FinishedSave> finished = wait ? writer_.Wait() : writer_.Poll();
  if (!finished) return;
  saved_ = finished->saved;
  listener_->RecordCheckpoint(*finished);
}

void Saver::GoOnFrom(int64_t step, const std::string& checkpoint) {
  saved_step_ = step;
  saved_.path = checkpoint;
  if (copier_) copier_->Add(step, checkpoint);  // a process that was killed may not have copied it
}

void Saver::FinishCopies(bool wait) {
  if (!copier_) return;
  const size_t waiting = copier_->pinned().size();
  if (wait && waiting > 0) LogInfo("waiting for the copies of " + std::to_string(waiting) + " checkpoints");
  if (wait) copier_->Finish();
  for (const CopyResult& result : copier_->TakeResults()) listener_->RecordCopy(result);
}

std::set<int64_t> Saver::MissingCopies() const {
  return copier_ ? copier_->missing() : std::set<int64_t>();
}

void Saver::DeleteCopied(int64_t newest_step) {
  if (copier_ && retention_.delete_copied) ApplyRetention(run_, retention_, newest_step, copier_.get());
}

int CopyCheckpoints(const TrainSettings& settings, int64_t newest_step, RunDirectory* run) {
  const std::unique_ptr<CheckpointCopier> copier = CopierOf(settings, *run);
  if (!copier) return 0;
  for (const int64_t step : run->CheckpointSteps()) copier->Add(step, run->CheckpointPath(step));
  copier->Finish();
  for (const CopyResult& result : copier->TakeResults()) {
    if (!result.copied) LogWarning("no copy of step " + std::to_string(result.step) + ": " + result.problem);
  }
  if (settings.delete_after_copy) ApplyRetention(run, RetentionOf(settings), newest_step, copier.get());
  return copier->missing().empty() ? 0 : static_cast<int>(ErrorCode::kIo);
}

}  // namespace trainwright
