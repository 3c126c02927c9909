#include "lib/nn/linear/linear.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <optional>
#include <string>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/nn/linear/bias.h"
#include "lib/nn/linear/chosen_matmul.h"
#include "lib/nn/linear/fp8.h"
#include "lib/nn/linear/quantized_product.h"
#include "lib/nn/product_ops.h"
#include "lib/spec/precision.h"
#include "lib/spec/product_rows.h"

namespace trainwright {
namespace {

/// Computes a GEMM with its epilogue, whose operations --profile counts as those of one that has none.
/// \param depth of the matrices, of which `elements` of the result are sums
/// \param compute returns whether it did
template <typename Compute>
bool ComputeFused(const char* name, int64_t elements, int64_t depth, const Compute& compute) {
  OpaqueProfileScope scope(name, ProfilePart::kGemm);
  const bool computed = compute();
  if (computed) scope.Count(2 * elements * depth);
  return computed;
}

}  // namespace

Linear::Linear(FlatParameters* parameters, const std::vector<size_t>& indices,
               const std::vector<size_t>& biases, bool fp8)
    : parameters_(parameters), fp8_(fp8) {
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

std::vector<Linear::Bias> Linear::BiasesOf(const Piece& piece) const {
  std::vector<Bias> biases;
  for (const Bias& bias : biases_) {
    if (bias.column >= piece.column && bias.column < piece.column + piece.rows) biases.push_back(bias);
  }
  return biases;
}

at::Tensor Linear::BiasVector(const Piece& piece) const {
  std::vector<at::Tensor> values;
  for (const Bias& bias : BiasesOf(piece)) values.push_back((*parameters_)[bias.index].value);
  if (values.empty()) return {};
  return values.size() == 1 ? values[0] : at::cat(values);
}

void Linear::AddBiases(const Piece& piece, at::Tensor& y) const {
  for (const Bias& bias : BiasesOf(piece)) {
    at::Tensor columns = y.narrow(1, bias.column, bias.rows);
    AddBias(parameters_->numerics(), (*parameters_)[bias.index].value, columns);
  }
}

int64_t Linear::CandidateOf(const char* name, const at::Tensor& a, int64_t depth, int64_t columns,
                            const ProductChooser::Trial& trial) const {
  ProductChooser* const chooser = parameters_->product_chooser();
  if (chooser == nullptr) return 0;
  const auto product = [&] {
    return std::string(name) + " " + PrecisionName(parameters_->numerics().precision) + " " +
           std::to_string(RowsOfProduct(a.numel() / depth)) + "x" + std::to_string(depth) + "x" +
           std::to_string(columns);
  };
  return chooser->CandidateOf(product, a.device(), trial);
}

bool Linear::TryForwardWithBias(const Piece& piece, const at::Tensor& x, at::Tensor& columns) const {
  const at::Tensor bias = BiasVector(piece);
  if (!bias.defined()) return false;
  const at::Tensor weight = parameters_->ComputeMatrix(piece.first, piece.rows, in_);
  const auto compute = [&](int64_t candidate, at::Tensor& y) {
    return ops::LinearWithBias(x, weight, bias, parameters_->numerics().code(), candidate, y);
  };
  const int64_t candidate = CandidateOf("linear_with_bias", x, in_, piece.rows, [&](int64_t tried) {
    at::Tensor y = at::empty_like(columns);
    return compute(tried, y);
  });
  return ComputeFused("matmul_with_bias", columns.numel(), in_, [&] { return compute(candidate, columns); });
}

void Linear::Forward(const at::Tensor& x, at::Tensor& y) const {
  const ProfileScope scope("linear_with_bias", ProfilePart::kGemm);
  if (!has_epilogues(x) || biases_.empty()) {
    ForwardWithoutBias(x, y);
    for (const Piece& piece : pieces_) AddBiases(piece, y);
    return;
  }
  for (const Piece& piece : pieces_) {
    at::Tensor columns = pieces_.size() == 1 ? y : y.narrow(1, piece.column, piece.rows);
    if (TryForwardWithBias(piece, x, columns)) continue;
    MultiplyForward(piece, x, columns);
    AddBiases(piece, y);
  }
}

bool Linear::ForwardThroughGelu(const at::Tensor& x, at::Tensor& pre, at::Tensor& y) const {
  if (!has_epilogues(x) || pieces_.size() != 1) return false;
  const ProfileScope scope("linear_with_gelu", ProfilePart::kGemm);
  const Piece& piece = pieces_[0];
  const at::Tensor bias = BiasVector(piece),
                   weight = parameters_->ComputeMatrix(piece.first, piece.rows, in_);
  const auto given = bias.defined() ? std::optional(bias) : std::nullopt;
  const auto compute = [&](int64_t candidate, at::Tensor& before, at::Tensor& after) {
    return ops::LinearWithGelu(x, weight, given, parameters_->numerics().code(), candidate, before, after);
  };
  const int64_t candidate = CandidateOf("linear_with_gelu", x, in_, piece.rows, [&](int64_t tried) {
    at::Tensor before = at::empty_like(pre), after = at::empty_like(y);
    return compute(tried, before, after);
  });
  return ComputeFused("matmul_with_gelu", pre.numel(), in_, [&] { return compute(candidate, pre, y); });
}

void Linear::ForwardWithoutBias(const at::Tensor& x, at::Tensor& y) const {
  const ProfileScope scope("linear", ProfilePart::kGemm);
  MultiplyAll(x, y);
  if (!adapted_.empty()) parameters_->adapters()->Scale(adapted_, y);
}

void Linear::MultiplyAll(const at::Tensor& x, at::Tensor& y) const {
  for (const Piece& piece : pieces_) {
    at::Tensor columns = pieces_.size() == 1 ? y : y.narrow(1, piece.column, piece.rows);
    MultiplyForward(piece, x, columns);
  }
  if (!adapted_.empty()) parameters_->adapters()->Forward(*parameters_, adapted_, x, y);
}

void Linear::MultiplyForward(const Piece& piece, const at::Tensor& x, at::Tensor& columns) const {
  if ((*parameters_)[piece.first].quantized() && parameters_->reads_quantized() && x.is_cpu() && !fp8_) {
    std::vector<const QuantizedMatrix*> matrices;
    for (size_t i = piece.first; i <= piece.last; ++i) matrices.push_back((*parameters_)[i].matrix.get());
    return MultiplyQuantized(parameters_->numerics(), matrices, x, columns);
  }
  const at::Tensor weight = parameters_->ComputeMatrix(piece.first, piece.rows, in_);
  if (!fp8_) {
    return ChosenMatmul(x, weight.t(), columns, /*accumulate=*/false, parameters_->product_chooser());
  }
  const Numerics& numerics = parameters_->numerics();
  Multiply(Fp8Matrix(numerics, x, Fp8Format::kE4m3).Rows(),
           Fp8Matrix(numerics, weight, Fp8Format::kE4m3).Rows(), columns, /*accumulate=*/false,
           parameters_->product_chooser());
}

void Linear::BackwardInFp8(const Piece& piece, const at::Tensor& columns, const at::Tensor& x,
                           at::Tensor& d_x) const {
  const Numerics& numerics = parameters_->numerics();
  const Fp8Matrix dy(numerics, columns, Fp8Format::kE5m2);
  if ((*parameters_)[piece.first].trainable) {
    GradientTarget target = parameters_->NextGradient(piece.first, piece.rows, in_);
    Multiply(dy.Columns(), Fp8Matrix(numerics, x, Fp8Format::kE4m3).Columns(), target.gradient,
             target.accumulate, parameters_->product_chooser());
  }
  if (!d_x.defined()) return;
  const at::Tensor weight = parameters_->ComputeMatrix(piece.first, piece.rows, in_);
  Multiply(dy.Rows(), Fp8Matrix(numerics, weight, Fp8Format::kE4m3).Columns(), d_x,
           /*accumulate=*/piece.column != 0, parameters_->product_chooser());
}

void Linear::AddBiasGradients(const Piece& piece, const at::Tensor& dy) const {
  for (const Bias& bias : BiasesOf(piece)) {
    at::Tensor gradient = parameters_->Gradient(bias.index);
    if (!gradient.defined()) continue;
    AccumulateBiasGradient(parameters_->numerics(), dy.narrow(1, bias.column, bias.rows), gradient);
  }
}

bool Linear::TryGradients(const Piece& piece, const at::Tensor& columns, const at::Tensor& x,
                          const GradientTarget& target) const {
  const std::vector<Bias> biases = BiasesOf(piece);
  if (biases.empty() || !target.gradient.defined()) return false;
  at::Tensor gradient = target.gradient, d_bias = at::empty({piece.rows}, gradient.options());
  const auto compute = [&](int64_t candidate, at::Tensor& d_weight) {
    return ops::LinearGradients(columns, x, target.accumulate, parameters_->numerics().code(), candidate,
                                d_weight, d_bias);
  };
  const int64_t candidate = CandidateOf("linear_gradients", x, in_, piece.rows, [&](int64_t tried) {
    at::Tensor d_weight = at::empty_like(gradient);
    return compute(tried, d_weight);
  });
  if (!ComputeFused("matmul_of_gradients", gradient.numel(), x.size(0),
                    [&] { return compute(candidate, gradient); })) {
    return false;
  }
  for (const Bias& bias : biases) {
    at::Tensor of_bias = parameters_->Gradient(bias.index);
    if (of_bias.defined()) of_bias.add_(d_bias.narrow(0, bias.column - piece.column, bias.rows));
  }
  return true;
}

void Linear::Backward(const at::Tensor& dy, const at::Tensor& x, at::Tensor& d_x) const {
  const ProfileScope scope("linear_backward_with_bias", ProfilePart::kGemm);
  if (!has_epilogues(x) || biases_.empty()) {
    for (const Piece& piece : pieces_) AddBiasGradients(piece, dy);
    BackwardWithoutBias(dy, x, d_x);
    return;
  }
  for (const Piece& piece : pieces_) {
    const at::Tensor columns = dy.narrow(1, piece.column, piece.rows);
    GradientTarget target;
    if ((*parameters_)[piece.first].trainable)
      target = parameters_->NextGradient(piece.first, piece.rows, in_);
    if (TryGradients(piece, columns, x, target)) continue;
    AddBiasGradients(piece, dy);
    if (target.gradient.defined()) {
      AccumulateWeightGradient(columns, x, target, parameters_->product_chooser());
    }
  }
  if (d_x.defined()) InputGradient(dy, d_x);
}

void Linear::InputGradient(const at::Tensor& dy, at::Tensor& d_x) const {
  for (const Piece& piece : pieces_) {
    const at::Tensor weight = parameters_->ComputeMatrix(piece.first, piece.rows, in_);
    ChosenMatmul(dy.narrow(1, piece.column, piece.rows), weight, d_x, /*accumulate=*/piece.column != 0,
                 parameters_->product_chooser());
  }
}

bool Linear::BackwardIntoGelu(const at::Tensor& dy, const at::Tensor& pre, at::Tensor& d_pre) const {
  if (!has_epilogues(dy) || pieces_.size() != 1) return false;
  const ProfileScope scope("linear_backward_into_gelu", ProfilePart::kGemm);
  const at::Tensor weight = parameters_->ComputeMatrix(pieces_[0].first, pieces_[0].rows, in_);
  const auto compute = [&](int64_t candidate, at::Tensor& gradient) {
    return ops::LinearBackwardIntoGelu(dy, weight, pre, parameters_->numerics().code(), candidate, gradient);
  };
  const int64_t candidate = CandidateOf("linear_backward_into_gelu", dy, out_, in_, [&](int64_t tried) {
    at::Tensor gradient = at::empty_like(d_pre);
    return compute(tried, gradient);
  });
  return ComputeFused("matmul_into_gelu", d_pre.numel(), out_, [&] { return compute(candidate, d_pre); });
}

void Linear::BackwardWithoutBias(const at::Tensor& dy, const at::Tensor& x, at::Tensor& d_x) const {
  const ProfileScope scope("linear_backward", ProfilePart::kGemm);
  if (adapted_.empty() || !parameters_->adapters()->scales()) return MultiplyAllBackward(dy, x, d_x);
  LoraAdapters& adapters = *parameters_->adapters();
  at::Tensor outputs = adapters.Unscaled(x, out_, dy.scalar_type());
  MultiplyAll(x, outputs);
  adapters.ScaleBackward(*parameters_, adapted_, dy, outputs);
  MultiplyAllBackward(outputs, x, d_x);
}

void Linear::MultiplyAllBackward(const at::Tensor& dy, const at::Tensor& x, at::Tensor& d_x) const {
  for (const Piece& piece : pieces_) {
    const at::Tensor columns = dy.narrow(1, piece.column, piece.rows);
    if (fp8_) {
      BackwardInFp8(piece, columns, x, d_x);
      continue;
    }
    if ((*parameters_)[piece.first].trainable) {
      AccumulateWeightGradient(columns, x, parameters_->NextGradient(piece.first, piece.rows, in_),
                               parameters_->product_chooser());
    }
    if (!d_x.defined()) continue;
    const at::Tensor weight = parameters_->ComputeMatrix(piece.first, piece.rows, in_);
    ChosenMatmul(columns, weight, d_x, /*accumulate=*/piece.column != 0, parameters_->product_chooser());
  }
  if (!adapted_.empty()) parameters_->adapters()->Backward(*parameters_, adapted_, dy, x, d_x);
}

void AccumulateWeightGradient(const at::Tensor& dy, const at::Tensor& x, GradientTarget target,
                              ProductChooser* chooser) {
  ChosenMatmul(dy.t(), x, target.gradient, target.accumulate, chooser);
}

}  // namespace trainwright
