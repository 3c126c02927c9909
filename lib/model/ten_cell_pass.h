/// The cell of a TEN layer on one micro-batch: from its normalised input to both sides of its gate, and back.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lib/model/ten.h"
#include "lib/model/ten_ends.h"
#include "lib/nn/scan/diagonal_scan.h"
#include "lib/nn/scan/eigen_decay.h"

namespace trainwright {

class Ten::CellPass {
 public:
  /// \param input outlives it
  CellPass(Ten* model, const DeviceInput& input)
      : model_(*model), numerics_(model->numerics()), input_(input), rows_(input.num_tokens()) {}

  /// \param views all of the cell's are written, but its input and statistics
  /// \param ends where the spans' are written, or of undefined tensors
  void Forward(const TenCell& cell, const at::Tensor& normed_nd, const TenEnds& starts, TenViews& views,
               TenEnds& ends);
  /// Writes what the scan reads again.
  void ScanInputAgain(const TenCell& cell, const TenEnds& starts, TenViews& views);
  /// Adds to the gradients of the cell; layers come from the last to the first.
  /// \param d_update_nd of what the gate gave, storage type, rounded
  /// \param views both sides of the gate are overwritten
  /// \param below whether the gradient of what lies below the cell is wanted
  /// \returns that of the normalised input, storage type; undefined without `below`
  at::Tensor Backward(const TenCell& cell, const at::Tensor& d_update_nd, const at::Tensor& normed_nd,
                      const TenEnds& starts, TenViews& views, bool below);

 private:
  /// What the scan multiplies its state by, and scales what enters by.
  struct Decay {
    EigenDecay eigen;
    ScanDecay scan;       ///< of `eigen`, or of each row
    at::Tensor shift_nz;  ///< what each row asks for; undefined: nothing
  };

  int64_t eigenstates() const { return model_.fields_.eigenstates; }
  int64_t channels() const { return 2 * eigenstates(); }
  at::Tensor Get(Scratch which) { return model_.Get(which, rows_, channels()); }
  ScanOptions scan_options() const { return {numerics_.scan, model_.fields_.scan_chunk}; }
  EigenDecay DecayOfChannels(const TenCell& cell) const;
  Decay DecayOf(const TenCell& cell, const at::Tensor& normed_nd);
  /// views.beta_nz += sigmoid(gate) of the states below, mixed.
  void AddMemory(const TenMemory& memory, TenViews& views);
  /// What the scan reads, from what the projections and the memory gave.
  void MakeScanInput(const TenCell& cell, const at::Tensor& gamma_k, const TenEnds& starts, TenViews& views,
                     TenEnds& ends);

  /// From the gradient of the cell's update to that of the states.
  at::Tensor StatesBackward(const TenCell& cell, const at::Tensor& d_update_nd, TenViews& views);
  /// From the gradient of the states to that of what the projections and the memory gave; that of the
  /// dynamics is added to theirs.
  /// \param decay its shift is overwritten with its gradient
  at::Tensor ScanBackward(const TenCell& cell, const TenEnds& starts, const TenViews& views, Decay& decay,
                          const at::Tensor& d_c_nz);
  /// \param d_b_nz the gradient of what the scan reads
  /// \param d_gamma_k fp64 [K], written; undefined: not wanted
  at::Tensor ScanInputBackward(const TenCell& cell, const at::Tensor& gamma_k, const TenEnds& starts,
                               const TenViews& views, at::Tensor& d_b_nz, at::Tensor& d_gamma_k);
  void MemoryBackward(const TenMemory& memory, const TenViews& views, const at::Tensor& d_beta_nz,
                      bool below);
  void MemoryGateBackward(const TenMemory& memory, const TenViews& views, const at::Tensor& d_beta_nz);
  /// Of the matrices that read the normalised input, whose gradient it returns.
  at::Tensor ProjectionsBackward(const TenCell& cell, const at::Tensor& normed_nd,
                                 const at::Tensor& d_beta_nz, const at::Tensor& d_gate_nd,
                                 const at::Tensor& d_shift_nz, bool below);

  Ten& model_;
  const Numerics& numerics_;
  const DeviceInput& input_;
  const int64_t rows_;
  at::Tensor d_memory_nz_;  ///< what the layer above asks of the states; undefined: nothing
};

}  // namespace trainwright
