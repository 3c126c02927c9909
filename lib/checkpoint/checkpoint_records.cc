#include "lib/checkpoint/checkpoint_records.h"

#include <filesystem>
#include <string>

namespace trainwright {

using nlohmann::ordered_json;

ordered_json CheckpointRecord(const SavedCheckpoint& saved, const std::optional<SaveTimes>& times) {
  const auto known = [&](auto SaveTimes::*field) {
    return times ? ordered_json((*times).*field) : ordered_json(nullptr);
  };
  return {{"step", saved.step},
          {"path", "checkpoints/" + std::filesystem::path(saved.path).filename().string()},
          {"size_bytes", saved.size_bytes},
          {"weights_sha256", saved.weights_sha256},
          {"background", known(&SaveTimes::background)},
          {"stall_s", known(&SaveTimes::stall_s)},
          {"wait_s", known(&SaveTimes::wait_s)},
          {"snapshot_s", known(&SaveTimes::snapshot_s)},
          {"write_time_s", known(&SaveTimes::write_time_s)},
          {"writer_cpu_s", known(&SaveTimes::writer_cpu_s)},
          {"save_time_s", known(&SaveTimes::save_time_s)}};
}

ordered_json CopyRecord(const CopyResult& result) {
  return {{"step", result.step},
          {"place", result.place},
          {"copied", result.copied},
          {"attempts", result.attempts},
          {"copy_time_s", result.copy_time_s},
          {"size_bytes", result.size_bytes},
          {"problem", result.problem}};
}

}  // namespace trainwright
