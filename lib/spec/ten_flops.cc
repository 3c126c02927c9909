/// Operations of the family ten. A token of a forward pass takes, in each layer,
///   2 (2KD + 2KD + D^2 + 2DF)   projections in, out, to the gate, and the MLP
///   4KD                         to decays, of a selective cell
///   4K^2                        of the memory, in all layers but the first: both parts of a number
///   4K^2/H + 4K taps + 8K       coupling, convolution, and a complex multiply-add for each eigenstate
/// and with windows of s tokens, of k eigenstates each,
///   2D^2 + sum over s of (8kD + 8k) / s
/// and the head 2DV a label. The backward pass takes twice as much.
#include <vector>

#include "lib/spec/adapter_flops.h"
#include "lib/spec/saved_modules.h"
#include "lib/spec/ten_family.h"

namespace trainwright {
namespace {

/// Where matrices lie in a layer.
enum TenStage { kIntoScan, kGate, kOut, kUp, kDown };

/// By TenStage. The gate has the input of the cell, too, and is multiplied with what comes out of it.
std::vector<std::vector<int>> TenStagesBelow() {
  return {{}, {}, {kIntoScan}, {kIntoScan, kGate, kOut}, {kIntoScan, kGate, kOut, kUp}};
}

MatrixPlace PlaceInTen(const LayerMatrix& matrix) {
  const auto is = [&](const char* name) { return matrix.module.ends_with(name); };
  if (is(".cell.memory")) return {.stage = kIntoScan, .token_rows = matrix.token_rows};
  if (is(".cell.gate_proj")) return {.stage = kGate};
  if (is(".cell.out_proj")) return {.stage = kOut};
  if (is(".mlp.up_proj")) return {.stage = kUp};
  if (is(".mlp.down_proj")) return {.stage = kDown};
  return {.stage = kIntoScan};
}

/// Of a token of a forward pass, by what adapters can stand beside and what not.
struct ForwardOfTen {
  double matrices = 0;                     ///< of all layers
  double recurrence = 0, multi_scale = 0;  ///< of a layer
};

ForwardOfTen FlopsOfForward(const ModelConfig& config) {
  const TenFields& fields = TenFieldsOf(config);
  // In doubles: the products of a large model and a long step pass 2^63.
  const auto width = static_cast<double>(config.hidden_size),
             states = static_cast<double>(fields.eigenstates);
  ForwardOfTen flops;
  for (const LayerMatrix& matrix : FamilyOf(config).LayerMatrices(config)) {
    flops.matrices +=
        2 * matrix.token_rows * static_cast<double>(matrix.outputs) * static_cast<double>(matrix.inputs);
  }
  flops.recurrence = 4 * states * states / static_cast<double>(fields.heads) +
                     4 * states * static_cast<double>(fields.convolution) + 8 * states;
  if (!fields.multi_scale()) return flops;
  const auto of_window = static_cast<double>(fields.window_eigenstates());
  flops.multi_scale = 2 * width * width;
  for (const int64_t window : fields.windows) {
    flops.multi_scale += (8 * of_window * width + 8 * of_window) / static_cast<double>(window);
  }
  return flops;
}

}  // namespace

StepFlops CountTenFlops(const ModelConfig& config, const FineTuning& tuning) {
  const ForwardOfTen forward = FlopsOfForward(config);
  const double of_layer = forward.recurrence + forward.multi_scale;
  const double per_token = forward.matrices + static_cast<double>(config.num_layers) * of_layer;
  const double per_label =
      2 * static_cast<double>(config.hidden_size) * static_cast<double>(config.vocab_size);
  if (!tuning.lora) return {.per_token = 3 * per_token, .per_label = 3 * per_label};

  const std::vector<LayerMatrix> matrices = FamilyOf(config).LayerMatrices(config);
  std::vector<MatrixPlace> places;
  for (const LayerMatrix& matrix : matrices) places.push_back(PlaceInTen(matrix));
  const SavedModules saved =
      ChooseSavedModules(tuning.lora->saved_modules, FamilyOf(config).outer_modules(), config.tie_embeddings);
  const AdapterFlops adapters(matrices, places, TenStagesBelow(), *tuning.lora,
                              FamilyOf(config).lora_blocks(), saved);
  StepFlops flops = {.per_token = per_token + adapters.per_token(),
                     .per_label = (saved.head ? 3 : 2) * per_label};
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    if (adapters.LeadsToAdapter(layer, kOut)) flops.per_token += forward.recurrence;
    if (adapters.LeadsToAdapter(layer, kUp)) flops.per_token += forward.multi_scale;
  }
  return flops;
}

}  // namespace trainwright
