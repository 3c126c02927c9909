#include "lib/train/graph_counts.h"

#include <cstdint>

#include "lib/base/units.h"
#include "lib/train/trainer.h"

namespace trainwright {
namespace {

template <typename Counts>
nlohmann::ordered_json EncodeCounts(const Counts& counts) {
  return {{"recorded", counts.recorded},
          {"launched", counts.launched},
          {"queued", counts.queued},
          {"record_s", counts.record_s},
          {"off", counts.off}};
}

template <typename Counts>
std::string FormatLaunches(const Counts& counts) {
  return std::to_string(counts.launched) + ", kernel by kernel " + std::to_string(counts.queued);
}

}  // namespace

std::optional<GraphCounts> GraphCountsOf(Trainer* trainer) {
  const PassGraphCounts* passes = trainer->model().graph_counts();
  if (passes == nullptr) return std::nullopt;
  const UpdateGraphCounts* updates = trainer->update_graph_counts();
  return GraphCounts{*passes, updates != nullptr ? *updates : UpdateGraphCounts()};
}

nlohmann::ordered_json EncodeGraphCounts(const GraphCounts& counts) {
  nlohmann::ordered_json json = EncodeCounts(counts.passes);
  json["updates"] = EncodeCounts(counts.updates);
  return json;
}

std::string FormatGraphCounts(const GraphCounts& counts) {
  const auto graphs = static_cast<uint64_t>(counts.passes.recorded + counts.updates.recorded);
  return "graphs: micro-batches in one launch " + FormatLaunches(counts.passes) + "; updates in one launch " +
         FormatLaunches(counts.updates) + "; recording " + FormatNumberOf(graphs, "graph") + " took " +
         FormatFixed(counts.passes.record_s + counts.updates.record_s, 2) + " s";
}

}  // namespace trainwright
