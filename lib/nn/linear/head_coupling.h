/// Heads of channels, each with a real square matrix that mixes the channels of the head: for head h of H,
///   y_h = x_h R_h^T,
/// where x_h are the columns [h B, (h + 1) B), B = K / H. Rows have real parts, then imaginary parts, and
/// both are multiplied by the same matrix: a row of Z = 2 K is two rows of K.
///
/// Determinism: as of Matmul; up to kMostThinRows rows the bits of one do not depend on the others.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>

#include "lib/nn/parameters/flat_parameters.h"

namespace trainwright {

class HeadCoupling {
 public:
  HeadCoupling() = default;
  /// \param parameters allocated, outlives this
  /// \param index of a parameter [H, B, B], not quantised
  HeadCoupling(FlatParameters* parameters, size_t index);
  bool trains() const;
  /// \param x_nz storage type [N, Z], contiguous, rounded
  /// \param y_nz the same; must not overlap x_nz
  void Forward(const at::Tensor& x_nz, at::Tensor& y_nz) const;
  /// Adds to the gradient of the matrices, where they are trained, and sets d_x_nz (unrounded under
  /// emulation) unless it is undefined.
  /// \param d_y_nz as it comes from Linear::Backward: rounded here, in place
  /// \param x_nz of Forward
  void Backward(at::Tensor& d_y_nz, const at::Tensor& x_nz, at::Tensor& d_x_nz) const;

 private:
  /// The columns of a head, of real and imaginary parts: [2 N, B].
  at::Tensor HeadOf(const at::Tensor& x_nz, int64_t head) const;

  FlatParameters* parameters_ = nullptr;
  size_t index_ = 0;
  int64_t heads_ = 0, block_ = 0;
};

}  // namespace trainwright
