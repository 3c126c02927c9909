#include "lib/train/saver.h"

#include <utility>

#include "lib/base/log.h"
#include "lib/checkpoint/async_save.h"
#include "lib/checkpoint/checkpoint_metadata.h"
#include "lib/checkpoint/checkpoint_upkeep.h"
#include "lib/device/pinned_memory.h"
#include "lib/io/byte_sink.h"
#include "lib/io/process_memory.h"
#include "lib/run/upkeep_records.h"

namespace trainwright {

Saver::Saver(const TrainSettings& settings, std::chrono::steady_clock::time_point start, bool saves_between,
             RunDirectory* run, CheckpointSource* source, RunListener* listener)
    : async_save_(settings.async_save),
      saves_between_(saves_between),
      retention_(RetentionOf(settings)),
      run_(run),
      source_(source),
      listener_(listener),
      copier_(MakeCopier(settings, *run)),
      saved_at_(start) {}

bool Saver::SavesInBackground() {
  if (background_) return *background_;
  if (!source_->allows_copies()) return false;
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
      size_bytes += HostCopyBytes(static_cast<int64_t>(tensor.nbytes()), tensor.device());
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
  saved_ = SavedAt(checkpoint);
  if (!copier_) return;
  const UpkeepRecords records = ReadUpkeepRecords(run_->metrics_path());
  recorded_copies_ = records.copies;
  QueueCopies(*run_, step, records, /*compares_all=*/false, copier_.get());
}

void Saver::AddEvaluation(int64_t step) {
  const std::string checkpoint = run_->CheckpointPath(step);
  ChangeFolderMetadata(checkpoint,
                       [&](nlohmann::ordered_json* metadata) { source_->DescribeEvaluation(metadata); });
  if (copier_) copier_->Add(step, checkpoint);
  ApplyRetention(run_, retention_, step, copier_.get());
}

void Saver::FinishCopies(bool wait, const std::function<void()>& look) {
  if (!copier_) return;
  const size_t waiting = copier_->pinned().size();
  if (wait && waiting > 0) LogInfo("waiting for the copies of " + std::to_string(waiting) + " checkpoints");
  if (wait) copier_->Finish(look);
  for (const CopyResult& result : copier_->TakeResults()) {
    const bool known = result.copied && recorded_copies_.contains({result.step, result.place});
    if (!known) listener_->RecordCopy(result);
  }
  copier_->MarkRecorded();
}

void Saver::AbandonCopies() {
  if (!copier_) return;
  copier_->Abandon();
  FinishCopies(/*wait=*/false);
  const size_t missing = copier_->missing().size();
  if (missing == 0) return;
  LogWarning(std::to_string(missing) + (missing == 1 ? " checkpoint has" : " checkpoints have") +
             " no copy, as the ranks end and do not wait: --resume makes what is missing");
}

std::set<int64_t> Saver::MissingCopies() const {
  return copier_ ? copier_->missing() : std::set<int64_t>();
}

void Saver::RotateCopied(int64_t newest_step) {
  if (!copier_ || (!retention_.delete_copied && !copier_->missing().empty())) return;
  ApplyRetention(run_, retention_, newest_step, copier_.get());
}

}  // namespace trainwright
