/// What a layer of a TEN model is made of, and what it keeps for its backward pass. Shapes as in
/// lib/nn/scan/diagonal_scan.h, with D, F and S of norms (mean, 1 / deviation) beside them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lib/model/layer_stack.h"
#include "lib/model/ten_multi_scale.h"
#include "lib/nn/linear/head_coupling.h"
#include "lib/nn/linear/linear.h"

namespace trainwright {

/// Indices of parameters.
struct TenNorm {
  size_t weight = 0, bias = 0;
};

/// The trained numbers of a decay: eigen_decay.h.
struct TenDynamics {
  size_t log_decay = 0, frequency = 0;
};

/// Adds to what enters the scan the states of the layer below, mixed and scaled by the sigmoid of a number.
struct TenMemory {
  size_t weight = 0, gate = 0;
  Linear mix;  ///< of real and imaginary parts alike
};

struct TenCell {
  Linear in, gate, out;
  std::optional<TenMemory> memory;
  std::optional<size_t> convolution;  ///< its kernel
  std::optional<Linear> selective;
  TenDynamics dynamics;
  HeadCoupling coupling;

  /// Whether anything in it is trained.
  bool trains() const {
    return in.trains() || gate.trains() || out.trains() || coupling.trains() ||
           (memory && memory->mix.trains()) || (selective && selective->trains());
  }
};

struct TenLayer {
  TenNorm cell_norm, mlp_norm;
  TenCell cell;
  Linear up, down;
};

/// Views of a layer, in the order of TenKeptTensors; what the model has not is undefined.
struct TenViews {
  at::Tensor input_nd, cell_statistics_sn;  ///< of the stream that the cell reads
  at::Tensor beta_nz;                       ///< what the convolution or the scale reads
  at::Tensor states_cz, c_nz;               ///< of the scan
  at::Tensor gate_nd, out_nd;               ///< both sides of the gate, without its bias
  at::Tensor middle_nd, mlp_statistics_sn;  ///< of the stream that the MLP reads
  at::Tensor mlp_nf;                        ///< before silu; undefined: computed again
  at::Tensor b_nz;                          ///< what the scan reads; `beta_nz` where nothing lies between
  at::Tensor memory_nz;                     ///< c_nz of the layer below
  std::span<const at::Tensor> multi_scale;  ///< those of TenMultiScale; of the LayerViews
};

/// What each layer keeps.
std::vector<KeptTensor> TenKeptTensors(const ModelConfig& config, const Numerics& numerics);
TenViews TenViewsOf(const ModelConfig& config, const LayerViews& views);

}  // namespace trainwright
