#include "lib/checkpoint/retention.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/checkpoint_metadata.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

}  // namespace

void ApplyRetention(RunDirectory* run, const Retention& retention, int64_t newest_step,
                    const CheckpointCopier* copier) {
  std::set<int64_t> spared = copier != nullptr ? copier->pinned() : std::set<int64_t>();
  if (copier != nullptr) spared.merge(copier->unrecorded());
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
  std::sort(evaluated.begin(), evaluated.end());
  for (size_t i = 0; i < evaluated.size() && i < static_cast<size_t>(retention.best); ++i) {
    spared.insert(evaluated[i].second);
  }
  run->PointBestAt(evaluated.empty() ? std::nullopt : std::optional(evaluated[0].second));
  if (newest_resumable) spared.insert(*newest_resumable);
  run->RotateCheckpoints(retention.newest, newest_step, spared);
  for (const int64_t step : run->CheckpointSteps()) {
    if (step < newest_step && copied.contains(step) && !spared.contains(step)) run->DeleteCheckpoint(step);
  }
}

}  // namespace trainwright
