#include "lib/checkpoint/retention.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/checkpoint_metadata.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

/// A checkpoint's own evaluation.
struct Evaluated {
  double loss_nats = 0;
  int64_t step = 0;
  std::string data;  ///< that the loss is of; "": not known, by older versions
};

std::string EvaluationDataOf(const nlohmann::json& metadata) {
  const auto state = metadata.find("history_state");
  if (state == metadata.end() || !state->is_object()) return "";
  const nlohmann::json data = state->value("evaluation_data", nlohmann::json());
  return data.is_string() ? data.get<std::string>() : "";
}

}  // namespace

void ApplyRetention(RunDirectory* run, const Retention& retention, int64_t newest_step,
                    const CheckpointCopier* copier) {
  std::set<int64_t> spared = copier != nullptr ? copier->pinned() : std::set<int64_t>();
  if (copier != nullptr) spared.merge(copier->unrecorded());
  // A copy that ends after this counts next time.
  const std::set<int64_t> copied =
      copier != nullptr && retention.delete_copied ? copier->copied() : std::set<int64_t>();
  std::vector<Evaluated> evaluated;
  std::string data;  // that the newest is evaluated on
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
      const std::string own_data = EvaluationDataOf(metadata);
      if (step == newest_step) data = own_data;
      if (loss.is_number()) evaluated.push_back({loss.get<double>(), step, own_data});
    } catch (const Error& error) {
      LogWarning(error.what());  // a broken one is none of the best
    }
  }
  if (!data.empty()) {
    std::erase_if(evaluated, [&](const Evaluated& one) { return !one.data.empty() && one.data != data; });
  }
  std::sort(evaluated.begin(), evaluated.end(), [](const Evaluated& a, const Evaluated& b) {
    return std::tie(a.loss_nats, a.step) < std::tie(b.loss_nats, b.step);
  });
  for (size_t i = 0; i < evaluated.size() && i < static_cast<size_t>(retention.best); ++i) {
    spared.insert(evaluated[i].step);
  }
  run->PointBestAt(evaluated.empty() ? std::nullopt : std::optional(evaluated[0].step));
  if (newest_resumable) spared.insert(*newest_resumable);
  run->RotateCheckpoints(retention.newest, newest_step, spared);
  for (const int64_t step : run->CheckpointSteps()) {
    if (step < newest_step && copied.contains(step) && !spared.contains(step)) run->DeleteCheckpoint(step);
  }
}

}  // namespace trainwright
