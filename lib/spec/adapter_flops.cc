#include "lib/spec/adapter_flops.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {

AdapterFlops::AdapterFlops(const std::vector<LayerMatrix>& matrices, const std::vector<MatrixPlace>& places,
                           std::vector<std::vector<int>> below, const LoraOptions& lora,
                           const LoraBlocks& blocks, const SavedModules& saved)
    : below_(std::move(below)), lowest_(std::numeric_limits<int64_t>::max()), adapted_(below_.size()) {
  TRAINWRIGHT_CHECK(matrices.size() == places.size());
  std::vector<std::string> modules;
  for (const LayerMatrix& matrix : matrices) modules.push_back(matrix.module);
  const std::vector<size_t> targets = ChooseLoraTargets(lora.targets, modules, blocks);
  std::vector<bool> has_adapter(matrices.size());
  for (const size_t target : targets) {
    has_adapter[target] = true;
    lowest_ = std::min(lowest_, matrices[target].layer);
  }
  if (saved.tables) lowest_ = -1;
  for (const size_t target : targets) {
    if (matrices[target].layer == lowest_) adapted_[static_cast<size_t>(places[target].stage)] = true;
  }
  const auto rank = static_cast<double>(lora.rank);
  for (size_t i = 0; i < matrices.size(); ++i) {
    const auto out = static_cast<double>(matrices[i].outputs), in = static_cast<double>(matrices[i].inputs);
    const bool goes_on = LeadsToAdapter(matrices[i].layer, places[i].stage);
    double row = goes_on ? 2 * in * out : 0;
    if (has_adapter[i]) {
      row += 2 * rank * (in + out) + 4 * rank * out + 2 * rank * in + (goes_on ? 2 * rank * in : 0);
    }
    per_token_ += places[i].token_rows * row;
  }
}

bool AdapterFlops::LeadsToAdapter(int64_t layer, int stage) const {
  if (layer != lowest_) return layer > lowest_;
  const std::vector<int>& below = below_[static_cast<size_t>(stage)];
  return std::any_of(below.begin(), below.end(),
                     [&](int lower) { return adapted_[static_cast<size_t>(lower)]; });
}

}  // namespace trainwright
