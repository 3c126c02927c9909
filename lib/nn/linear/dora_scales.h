/// The scales of DoRA: a matrix W with an adapter s B A computes y_o = m_o / n_o (W x + s B A x)_o, where m
/// is a trained magnitude for each output o and n_o = ||W_o + s (B A)_o|| over the inputs.
///
/// n is of the values that the GEMMs read, added in fp32; where it is 0, so is the scale. It is a constant
/// to the backward pass, as in peft: with u = W x + s B A x the gradients are d_m_o = sum over rows of dy_o
/// u_o / n_o and d_u_o = m_o / n_o dy_o. Norms and scales are computed when values have changed, once for
/// all passes until they change again, in memory that does not move. Bits do not depend on threads.
/// \source Liu et al. 2024, arXiv:2402.09353, sections 4.1 and 4.3; names and the start are peft's
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/nn/parameters/flat_parameters.h"
#include "lib/nn/precision.h"

namespace trainwright {

/// A matrix with an adapter and a magnitude: parameters by index.
struct DoraMatrix {
  size_t weight = 0, a = 0, b = 0, magnitude = 0;
};

class DoraScales {
 public:
  /// Takes the memory of norms and scales, and all that Refresh needs.
  /// \param parameters allocated
  DoraScales(const FlatParameters& parameters, std::vector<DoraMatrix> matrices, double scaling);

  /// Computes norms and scales of the parameters' values.
  void Refresh(FlatParameters& parameters);
  /// Sets each magnitude to its norm, which changes nothing about what the model computes.
  void StartMagnitudes(FlatParameters* parameters) const;
  /// n of a matrix's outputs, fp32 [out].
  const at::Tensor& norms(size_t matrix) const { return norms_[matrix]; }
  /// m / n, fp32 [out].
  const at::Tensor& scales(size_t matrix) const { return scales_[matrix]; }
  int64_t bytes() const;

 private:
  std::vector<DoraMatrix> matrices_;
  double scaling_;
  at::Tensor values_;  ///< of all norms and scales
  std::vector<at::Tensor> norms_, scales_;
  at::Tensor rows_, a_, b_;  ///< fp32: rows of W + s B A, A, and these rows of s B
};

/// y_no = scale_o y_no, in fp32 and rounded once to the type of y.
/// \param y_no storage type, any view
/// \param scale_o fp32
void ScaleColumns(const at::Tensor& scale_o, at::Tensor& y_no);

/// The backward pass of ScaleColumns where scale_o = m_o / norm_o: adds the sums over rows of dy_o y_o,
/// divided by norm_o, to d_m_o, and then y_no = scale_o dy_no. In fp32, the sums in an order that depends on
/// the number of rows alone; y is rounded once to its type.
/// \param scale_o, norm_o fp32, contiguous
/// \param dy_no storage type, rows contiguous
/// \param y_no of dy's type, rows contiguous: the columns before they were scaled; becomes their gradient
/// \param d_m_o fp32, contiguous
void ScaleColumnsBackward(const at::Tensor& scale_o, const at::Tensor& norm_o, const at::Tensor& dy_no,
                          at::Tensor& y_no, at::Tensor& d_m_o);

}  // namespace trainwright
