#include "lib/nn/linear/linear.h"

#include <optional>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/nn/linear/bias.h"
#include "lib/nn/linear/matmul.h"

namespace trainwright {

Linear::Linear(FlatParameters* parameters, const std::vector<size_t>& indices,
               const std::vector<size_t>& biases)
    : parameters_(parameters) {
  TRAINWRIGHT_CHECK(biases.empty() || biases.size() == indices.size());
  for (const size_t index : indices) {
    const Parameter& parameter = (*parameters)[index];
    TRAINWRIGHT_CHECK(parameter.shape.size() == 2 && (in_ == 0 || in_ == parameter.shape[1]));
    in_ = parameter.shape[1];
    const int64_t rows = parameter.shape[0];
    if (!pieces_.empty() && parameters->Adjoin(pieces_.back().last, index)) {
      pieces_.back().last = index;
      pieces_.back().rows += rows;
    } else {
      pieces_.push_back({index, index, out_, rows});
    }
    if (!biases.empty()) {
      const size_t bias = biases[biases_.size()];
      TRAINWRIGHT_CHECK((*parameters)[bias].size == rows);
      biases_.push_back({bias, out_, rows});
    }
    const std::optional<size_t> module =
        parameters->adapters() != nullptr ? parameters->adapters()->ModuleOf(index) : std::nullopt;
    if (module) adapted_.push_back({*module, out_, rows});
    out_ += rows;
  }
}

at::Tensor Linear::bias() const {
  TRAINWRIGHT_CHECK(biases_.size() <= 1);
  return biases_.empty() ? at::Tensor() : (*parameters_)[biases_[0].index].value;
}

at::Tensor Linear::bias_gradient() const {
  TRAINWRIGHT_CHECK(biases_.size() <= 1);
  return biases_.empty() ? at::Tensor() : parameters_->Gradient(biases_[0].index);
}

bool Linear::trains() const {
  bool trains = !adapted_.empty();
  for (const Piece& piece : pieces_) trains |= (*parameters_)[piece.first].trainable;
  return trains;
}

void Linear::Forward(const at::Tensor& x, at::Tensor& y) const {
  const ProfileScope scope("linear_with_bias", ProfilePart::kGemm);
  ForwardWithoutBias(x, y);
  for (const Bias& bias : biases_) {
    at::Tensor columns = y.narrow(1, bias.column, bias.rows);
    AddBias(parameters_->numerics(), (*parameters_)[bias.index].value, columns);
  }
}

void Linear::ForwardWithoutBias(const at::Tensor& x, at::Tensor& y) const {
  const ProfileScope scope("linear", ProfilePart::kGemm);
  for (const Piece& piece : pieces_) {
    const at::Tensor weight = parameters_->ComputeMatrix(piece.first, piece.rows, in_);
    at::Tensor columns = pieces_.size() == 1 ? y : y.narrow(1, piece.column, piece.rows);
    Matmul(x, weight.t(), columns);
  }
  if (!adapted_.empty()) parameters_->adapters()->Forward(*parameters_, adapted_, x, y);
}

void Linear::Backward(const at::Tensor& dy, const at::Tensor& x, at::Tensor& d_x) const {
  const ProfileScope scope("linear_backward_with_bias", ProfilePart::kGemm);
  for (const Bias& bias : biases_) {
    at::Tensor gradient = parameters_->Gradient(bias.index);
    if (!gradient.defined()) continue;
    AccumulateBiasGradient(parameters_->numerics(), dy.narrow(1, bias.column, bias.rows), gradient);
  }
  BackwardWithoutBias(dy, x, d_x);
}

void Linear::BackwardWithoutBias(const at::Tensor& dy, const at::Tensor& x, at::Tensor& d_x) const {
  const ProfileScope scope("linear_backward", ProfilePart::kGemm);
  for (const Piece& piece : pieces_) {
    const at::Tensor columns = dy.narrow(1, piece.column, piece.rows);
    if ((*parameters_)[piece.first].trainable) {
      AccumulateWeightGradient(columns, x, parameters_->NextGradient(piece.first, piece.rows, in_));
    }
    if (!d_x.defined()) continue;
    const at::Tensor weight = parameters_->ComputeMatrix(piece.first, piece.rows, in_);
    Matmul(columns, weight, d_x, /*accumulate=*/piece.column != 0);
  }
  if (!adapted_.empty()) parameters_->adapters()->Backward(*parameters_, adapted_, dy, x, d_x);
}

void AccumulateWeightGradient(const at::Tensor& dy, const at::Tensor& x, GradientTarget target) {
  Matmul(dy.t(), x, target.gradient, target.accumulate);
}

}  // namespace trainwright
