#include "lib/nn/flat_parameters.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <functional>
#include <numeric>
#include <utility>

#include "lib/base/error.h"
#include "lib/nn/elementwise.h"

namespace trainwright {
namespace {
constexpr int64_t kAlignment = 16;  // elements: 64 bytes of fp32
}

size_t FlatParameters::Add(std::string name, std::vector<int64_t> shape, bool decay) {
  TRAINWRIGHT_CHECK(!values_.defined());
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.size = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  parameter.shape = std::move(shape);
  parameter.decay = decay;
  parameter.offset = padded_;
  count_ += parameter.size;
  padded_ += (parameter.size + kAlignment - 1) / kAlignment * kAlignment;
  parameters_.push_back(std::move(parameter));
  return parameters_.size() - 1;
}

void FlatParameters::AddZeros(std::string name, std::vector<int64_t> shape) {
  zeros_.push_back({std::move(name), std::move(shape)});
}

void FlatParameters::Allocate(const Numerics& numerics, at::Device device) {
  numerics_ = numerics;
  values_ = at::zeros({padded_}, at::TensorOptions().dtype(at::kFloat).device(device));
  const bool copied = numerics.precision != Precision::kFp32;
  compute_ =
      copied ? at::zeros({padded_}, at::TensorOptions().dtype(numerics.storage).device(device)) : values_;
  for (Parameter& parameter : parameters_) {
    parameter.value = values_.narrow(0, parameter.offset, parameter.size).view(parameter.shape);
    parameter.compute = compute_.narrow(0, parameter.offset, parameter.size).view(parameter.shape);
  }
}

const Parameter* FlatParameters::Find(const std::string& name) const {
  for (const Parameter& parameter : parameters_) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

at::Tensor& FlatParameters::gradients() {
  if (!gradients_.defined()) {
    gradients_ = at::zeros({padded_}, values_.options());
    for (Parameter& parameter : parameters_) {
      parameter.gradient = gradients_.narrow(0, parameter.offset, parameter.size).view(parameter.shape);
    }
  }
  return gradients_;
}

at::Tensor FlatParameters::Matrix(const at::Tensor& buffer, size_t index, int64_t rows,
                                  int64_t columns) const {
  return buffer.narrow(0, parameters_[index].offset, rows * columns).view({rows, columns});
}

void FlatParameters::ZeroGradients() {
  gradients().zero_();
}

void FlatParameters::RefreshCompute() {
  if (numerics_.precision != Precision::kFp32) RoundInto(numerics_, values_, compute_);
}

}  // namespace trainwright
