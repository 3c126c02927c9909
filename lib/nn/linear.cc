#include "lib/nn/linear.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include "lib/base/error.h"

namespace trainwright {

Linear::Linear(FlatParameters* parameters, const std::vector<size_t>& indices) : parameters_(parameters) {
  for (const size_t index : indices) {
    const Parameter& parameter = (*parameters)[index];
    TRAINWRIGHT_CHECK(parameter.shape.size() == 2 && (in_ == 0 || in_ == parameter.shape[1]));
    in_ = parameter.shape[1];
    const int64_t rows = parameter.shape[0];
    const bool adjoins =
        !pieces_.empty() &&
        (*parameters)[pieces_.back().index].offset + pieces_.back().rows * in_ == parameter.offset;
    if (adjoins) {
      pieces_.back().rows += rows;
    } else {
      pieces_.push_back({index, out_, rows});
    }
    out_ += rows;
  }
}

void Linear::Forward(const at::Tensor& x, at::Tensor& y) const {
  for (const Piece& piece : pieces_) {
    const at::Tensor weight = parameters_->Matrix(parameters_->compute(), piece.index, piece.rows, in_);
    at::Tensor columns = pieces_.size() == 1 ? y : y.narrow(1, piece.column, piece.rows);
    at::mm_out(columns, x, weight.t());
  }
}

void Linear::Backward(const at::Tensor& dy, const at::Tensor& x, at::Tensor& d_x) const {
  for (const Piece& piece : pieces_) {
    const at::Tensor columns = dy.narrow(1, piece.column, piece.rows);
    AccumulateWeightGradient(columns, x,
                             parameters_->Matrix(parameters_->gradients(), piece.index, piece.rows, in_));
    if (!d_x.defined()) continue;
    const at::Tensor weight = parameters_->Matrix(parameters_->compute(), piece.index, piece.rows, in_);
    if (piece.column == 0) {
      at::mm_out(d_x, columns, weight);
    } else {
      at::addmm_out(d_x, d_x, columns, weight);
    }
  }
}

void AccumulateWeightGradient(const at::Tensor& dy, const at::Tensor& x, at::Tensor gradient) {
  if (dy.scalar_type() == at::kFloat) {
    at::addmm_out(gradient, gradient, dy.t(), x);
  } else {
    gradient.add_(at::mm(dy.t(), x));
  }
}

}  // namespace trainwright
