/// What --compile repeated in this process, for the end of a run's records.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lib/model/pass_graphs.h"
#include "lib/optim/update_graph.h"

namespace trainwright {

class Trainer;

struct GraphCounts {
  PassGraphCounts passes;
  UpdateGraphCounts updates;  ///< zeros where they are never repeated
};

/// Absent where the trainer's model never repeats passes.
std::optional<GraphCounts> GraphCountsOf(Trainer* trainer);

/// The value of "graphs" in metrics.schema.json.
nlohmann::ordered_json EncodeGraphCounts(const GraphCounts& counts);
/// A line for a person.
std::string FormatGraphCounts(const GraphCounts& counts);

}  // namespace trainwright
