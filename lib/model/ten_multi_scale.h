/// The multi-scale block of a TEN layer, between its cell and its MLP: cells that see means of 1, 2, 4 ...
/// rows,
///   xm = norm(x);   u_i = W_in,i xm;   c_i = scan(gamma_i * means of s_i rows each of u_i);
///   o = sum_i W_out,i (c_i of the last complete window, zero before the first);
///   x += sigmoid(W_g xm + b_g) o.
/// Projecting the means would be the same maths: projected first, all windows take one GEMM, and what is
/// kept of an open window is as small as the state.
///
/// Shape legend: that of lib/nn/scan/diagonal_scan.h, and W windows, k = K / W eigenstates each, z = 2 k (the
/// real parts, then the imaginary parts). Columns of a [.., Z] tensor are [W, z].
///
/// Names of the parameters, below ten.layers.{l}.: multi_scale_norm.{weight,bias} [D], for each window
/// multi_scale.{i}.{in_proj.weight [z, D], log_decay [k], frequency [k], out_proj.weight [D, z]}, and
/// multi_scale.gate_proj.{weight [D, D], bias [D]}.
///
/// What a span goes on from is two numbers a column and window, whatever came before it: the state after its
/// last complete window, and the sum of the window that is open. What its rows see before they complete a
/// window is that state, rounded, so it need not be kept; nor the rows of the open window, which are those of
/// the span modulo the length. Windows are counted from the span's start, whatever passes it is cut into.
///
/// One of a body, for all its layers; scratch is shared by them. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/model/layer_stack.h"
#include "lib/nn/linear/linear.h"
#include "lib/nn/norm/layer_norm.h"
#include "lib/nn/pooling/causal_windows.h"
#include "lib/nn/scan/diagonal_scan.h"
#include "lib/nn/scan/eigen_decay.h"
#include "lib/spec/model_config.h"
#include "lib/spec/scan_kind.h"
#include "lib/spec/ten_fields.h"

namespace trainwright {

class TenMultiScale {
 public:
  /// A micro-batch, the same for all layers.
  struct Rows {
    std::vector<CausalWindows> windows;  ///< [W]
    std::vector<int64_t> rows_before;    ///< [S]; empty: none
  };
  /// What a layer's block keeps of each span from pass to pass, fp32 [S, Z]; undefined: zeros, or not wanted.
  struct Ends {
    at::Tensor scan_sz;  ///< after the last complete window
    at::Tensor sum_sz;   ///< of the rows of the open window
  };
  /// Storage type [N, D], with undefined content; other memory than anything else that a call is given.
  struct Scratch {
    at::Tensor normed_nd, wide_nd;
    at::Tensor d_normed_nd;  ///< of a backward pass
  };

  /// What a layer keeps, in the order in which Forward takes it.
  static std::vector<KeptTensor> KeptTensors(const ModelConfig& config, const Numerics& numerics);

  /// \param config of the family ten, with windows
  /// \param parameters outlives it
  TenMultiScale(const ModelConfig& config, ScanKind scan, const Numerics& numerics, at::Device device,
                FlatParameters* parameters);
  /// Declares the parameters of the next layer. Before they are allocated.
  /// \param prefix of the layer's names, "ten.layers.0." say
  void AddLayer(const std::string& prefix);
  /// Once they are allocated.
  void Bind();
  /// Sets the decays, the frequencies and the biases of gates where training starts; the rest is
  /// InitializeWeights's.
  void Initialize(uint64_t seed);
  /// Whether it is one of those that Initialize sets.
  static bool Starts(const std::string& parameter);

  /// \param rows_before [S]: how many rows each span has had in earlier passes; empty: none
  Rows RowsOf(const DeviceInput& input, const std::vector<int64_t>& rows_before) const;
  /// Also the forward pass again, for recomputation: then `to` is null.
  /// \param views those of KeptTensors; written
  /// \param from where each span goes on
  /// \param to what its next pass goes on from; null: not wanted. New tensors
  /// \param residual what the cell leaves; becomes what the block leaves, in the same `update_nd`
  void Forward(size_t layer, const Rows& rows, std::span<const at::Tensor> views, const Ends& from, Ends* to,
               const Scratch& scratch, Residual& residual);
  /// Adds to the gradients of the layer's parameters and, with `below`, to d_stream_nd.
  /// \param views, from of the forward pass; the former are overwritten
  /// \param d_short_nd the gradient of the stream above the block, storage type [N, D], rounded
  /// \param below whether the gradient of the stream below the block is wanted
  /// \param d_stream_nd fp32 [N, D]
  void Backward(size_t layer, const Rows& rows, std::span<const at::Tensor> views, const Ends& from,
                const Scratch& scratch, const at::Tensor& d_short_nd, bool below, at::Tensor& d_stream_nd);
  /// Whether anything in a layer's block is trained.
  bool trains(size_t layer) const;
  /// What its scratch has grown to, and giving that back.
  int64_t workspace_bytes() const;
  void ReleaseWorkspace();

 private:
  /// Parameters' indices.
  struct Cell {
    size_t in = 0, log_decay = 0, frequency = 0, out = 0;
  };
  struct Layer {
    size_t norm_weight = 0, norm_bias = 0, gate = 0, gate_bias = 0;
    std::vector<Cell> cells;  ///< [W]
    Linear in, gate_proj;
    std::vector<Linear> out;  ///< [W]
  };
  class Window;

  at::Tensor Value(size_t parameter) const { return parameters_->all()[parameter].value; }
  bool IsTrained(size_t parameter) const { return parameters_->all()[parameter].trainable; }
  bool TrainsDynamics(const Layer& layer) const;
  LayerNormWeights NormOf(const Layer& layer) const {
    return {Value(layer.norm_weight), Value(layer.norm_bias)};
  }
  int64_t window_channels() const { return 2 * fields_.window_eigenstates(); }
  /// z columns of window i of a tensor that has all; undefined stays so.
  at::Tensor OfWindow(const at::Tensor& of_all, size_t window) const;
  at::Tensor Temporary(Buffer& buffer, int64_t rows, int64_t columns) const {
    return buffer.Get({rows, columns}, numerics_.storage, device_);
  }

  ModelConfig config_;
  TenFields fields_;
  ScanOptions scan_;
  Numerics numerics_;
  at::Device device_;
  FlatParameters* parameters_;
  std::vector<Layer> layers_;
  Buffer projected_, seen_, scaled_, d_projected_, d_seen_, d_scanned_, d_scaled_;
};

}  // namespace trainwright
