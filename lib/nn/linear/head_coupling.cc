#include "lib/nn/linear/head_coupling.h"

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/nn/linear/bias.h"
#include "lib/nn/linear/linear.h"
#include "lib/nn/linear/matmul.h"
#include "lib/nn/linear/thin_product.h"

namespace trainwright {
namespace {

/// Whether rows are few enough for bits that do not depend on how many they are (matmul.h), though twice as
/// many are not.
bool AreFewInParts(int64_t rows) {
  return rows <= cpu::kMostThinRows && 2 * rows > cpu::kMostThinRows;
}

}  // namespace

HeadCoupling::HeadCoupling(FlatParameters* parameters, size_t index)
    : parameters_(parameters), index_(index) {
  const Parameter& parameter = (*parameters)[index];
  TRAINWRIGHT_CHECK(parameter.shape.size() == 3 && parameter.shape[1] == parameter.shape[2]);
  heads_ = parameter.shape[0];
  block_ = parameter.shape[1];
}

bool HeadCoupling::trains() const {
  return (*parameters_)[index_].trainable;
}

at::Tensor HeadCoupling::HeadOf(const at::Tensor& x_nz, int64_t head) const {
  TRAINWRIGHT_CHECK(x_nz.is_contiguous() && x_nz.size(1) == 2 * heads_ * block_);
  return x_nz.view({2 * x_nz.size(0), heads_ * block_}).narrow(1, head * block_, block_);
}

void HeadCoupling::Forward(const at::Tensor& x_nz, at::Tensor& y_nz) const {
  const ProfileScope scope("head_coupling", ProfilePart::kGemm);
  const at::Tensor weights = parameters_->ComputeMatrix(index_, heads_ * block_, block_);
  const bool in_parts = AreFewInParts(x_nz.size(0));
  for (int64_t head = 0; head < heads_; ++head) {
    const at::Tensor matrix = weights.narrow(0, head * block_, block_).t();
    if (!in_parts) {
      at::Tensor columns = HeadOf(y_nz, head);
      Matmul(HeadOf(x_nz, head), matrix, columns);
      continue;
    }
    for (const int64_t part : {int64_t{0}, heads_ * block_}) {
      at::Tensor columns = y_nz.narrow(1, part + head * block_, block_);
      Matmul(x_nz.narrow(1, part + head * block_, block_), matrix, columns);
    }
  }
  AddBias(parameters_->numerics(), {}, y_nz);
}

void HeadCoupling::Backward(at::Tensor& d_y_nz, const at::Tensor& x_nz, at::Tensor& d_x_nz) const {
  const ProfileScope scope("head_coupling_backward", ProfilePart::kGemm);
  AddBias(parameters_->numerics(), {}, d_y_nz);
  at::Tensor gradients;
  if (trains()) gradients = parameters_->GradientMatrix(index_, heads_ * block_, block_);
  const at::Tensor weights = parameters_->ComputeMatrix(index_, heads_ * block_, block_);
  for (int64_t head = 0; head < heads_; ++head) {
    const at::Tensor d_columns = HeadOf(d_y_nz, head);
    if (gradients.defined()) {
      AccumulateWeightGradient(d_columns, HeadOf(x_nz, head), gradients.narrow(0, head * block_, block_));
    }
    if (!d_x_nz.defined()) continue;
    at::Tensor d_x = HeadOf(d_x_nz, head);
    Matmul(d_columns, weights.narrow(0, head * block_, block_), d_x);
  }
}

}  // namespace trainwright
