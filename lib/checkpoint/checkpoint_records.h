/// The records of metrics.jsonl about checkpoints and their copies.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/checkpoint_copier.h"
#include "lib/checkpoint/checkpoint_writer.h"

namespace trainwright {

/// Fields of the record "checkpoint".
/// \param times of the save; absent: of a process that was killed before it reported them, and then null
nlohmann::ordered_json CheckpointRecord(const SavedCheckpoint& saved, const std::optional<SaveTimes>& times);

/// Fields of the record "copy".
nlohmann::ordered_json CopyRecord(const CopyResult& result);

}  // namespace trainwright
