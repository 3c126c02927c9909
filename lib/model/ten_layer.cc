#include "lib/model/ten_layer.h"

#include "lib/base/error.h"
#include "lib/spec/ten_family.h"

namespace trainwright {
namespace {

/// Whether something lies between what the projections gave and what the scan reads.
bool HasScanInput(const TenFields& fields) {
  return fields.convolution > 0 || fields.init == TenInit::kLru;
}

}  // namespace

std::vector<KeptTensor> TenKeptTensors(const ModelConfig& config, const Numerics& numerics) {
  const TenFields& fields = TenFieldsOf(config);
  const int64_t channels = 2 * fields.eigenstates, width = config.hidden_size;
  const KeptTensor statistics{.width = 2, .tokens_last = true};
  const auto stored = [&](Stays stays, int64_t columns) {
    return KeptTensor{.stays = stays, .width = columns, .dtype = numerics.storage};
  };
  std::vector<KeptTensor> kept = {
      {.width = width},
      statistics,
      stored(Stays::kUnlessFull, channels),
      {.stays = Stays::kUnlessFull, .width = channels, .chunk = fields.scan_chunk},
      stored(Stays::kUnlessFull, channels),
      stored(Stays::kUnlessFull, width),
      stored(Stays::kUnlessFull, width),
      {.stays = Stays::kUnlessFull, .width = width},
      statistics,
      {.stays = Stays::kUnlessSelectiveOrFull,
       .width = config.intermediate_size,
       .dtype = numerics.storage,
       .in_parts = true}};
  if (HasScanInput(fields)) kept.push_back(stored(Stays::kUnlessSelectiveOrFull, channels));
  if (fields.layer_memory) kept.push_back(stored(Stays::kAlways, channels));
  if (!fields.multi_scale()) return kept;
  for (const KeptTensor& tensor : TenMultiScale::KeptTensors(config, numerics)) kept.push_back(tensor);
  return kept;
}

TenViews TenViewsOf(const ModelConfig& config, const LayerViews& views) {
  const TenFields& fields = TenFieldsOf(config);
  TenViews named;
  size_t next = 0;
  for (at::Tensor* view :
       {&named.input_nd, &named.cell_statistics_sn, &named.beta_nz, &named.states_cz, &named.c_nz,
        &named.gate_nd, &named.out_nd, &named.middle_nd, &named.mlp_statistics_sn, &named.mlp_nf}) {
    *view = views[next++];
  }
  named.b_nz = HasScanInput(fields) ? views[next++] : named.beta_nz;
  if (fields.layer_memory) named.memory_nz = views[next++];
  named.multi_scale = std::span(views).subspan(next);
  return named;
}

}  // namespace trainwright
