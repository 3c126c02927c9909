#include "lib/nn/parameters/flat_parameters.h"

#include <ATen/ops/zeros.h>

#include <functional>
#include <numeric>
#include <utility>

#include "lib/base/error.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/linear/lora.h"

namespace trainwright {
namespace {

constexpr int64_t kAlignment = 16;  // elements: 64 bytes of fp32

int64_t Padded(int64_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

/// Or several, one behind the other.
bool IsMatrix(const Parameter& parameter) {
  return parameter.shape.size() >= 2;
}

/// Of the trainable parameters, which lie in their order.
std::vector<GradientBuffer::Segment> GradientSegments(const std::vector<Parameter>& parameters) {
  std::vector<GradientBuffer::Segment> segments;
  const Parameter* previous = nullptr;
  for (const Parameter& parameter : parameters) {
    if (!parameter.trainable) continue;
    if (previous == nullptr || previous->segment != parameter.segment) {
      segments.push_back({parameter.offset, parameter.offset});
    }
    segments.back().end = parameter.offset + Padded(parameter.size);
    previous = &parameter;
  }
  return segments;
}

/// What products put gradients to.
std::vector<GradientBuffer::Matrix> GradientMatrices(const std::vector<Parameter>& parameters) {
  std::vector<GradientBuffer::Matrix> matrices;
  for (const Parameter& parameter : parameters) {
    if (parameter.trainable && IsMatrix(parameter)) matrices.push_back({parameter.offset, parameter.size});
  }
  return matrices;
}

}  // namespace

size_t FlatParameters::Add(std::string name, std::vector<int64_t> shape, bool decay, double rate) {
  TRAINWRIGHT_CHECK(!values_.defined() && rate > 0);
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.size = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  parameter.shape = std::move(shape);
  parameter.decay = decay;
  parameter.rate = rate;
  parameter.segment = segment_;
  count_ += parameter.size;
  parameters_.push_back(std::move(parameter));
  return parameters_.size() - 1;
}

void FlatParameters::AddZeros(std::string name, std::vector<int64_t> shape) {
  zeros_.push_back({std::move(name), std::move(shape)});
}

void FlatParameters::AddAlias(std::string name, size_t index) {
  aliases_.push_back({std::move(name), index});
}

void FlatParameters::Freeze(size_t index) {
  TRAINWRIGHT_CHECK(!values_.defined());
  parameters_[index].trainable = false;
}

void FlatParameters::Quantize(size_t index, WeightFormat format) {
  Freeze(index);
  TRAINWRIGHT_CHECK(parameters_[index].shape.size() == 2 && format != WeightFormat::kPlain);
  parameters_[index].format = format;
}

void FlatParameters::Allocate(const Numerics& numerics, at::Device device) {
  numerics_ = numerics;
  int64_t trainable = 0, frozen_matrices = 0, frozen_vectors = 0;
  for (Parameter& parameter : parameters_) {
    if (parameter.quantized()) continue;
    int64_t& end = parameter.trainable ? trainable : IsMatrix(parameter) ? frozen_matrices : frozen_vectors;
    parameter.offset = end;
    end += Padded(parameter.size);
  }
  const auto zeros = [&](int64_t size, at::ScalarType type) {
    return at::zeros({size}, at::TensorOptions().dtype(type).device(device));
  };
  values_ = zeros(trainable, at::kFloat);
  compute_ = numerics.precision != Precision::kFp32 ? zeros(trainable, numerics.storage) : values_;
  gradients_.SetLayout(GradientSegments(parameters_), values_.options(), GradientMatrices(parameters_));
  frozen_matrices_ = zeros(frozen_matrices, numerics.storage);
  frozen_vectors_ = zeros(frozen_vectors, at::kFloat);
  for (Parameter& parameter : parameters_) {
    if (parameter.quantized()) {
      parameter.matrix = NewQuantizedMatrix(parameter.format, parameter.shape[0], parameter.shape[1], device);
      continue;
    }
    const auto view = [&](const at::Tensor& buffer) {
      return buffer.narrow(0, parameter.offset, parameter.size).view(parameter.shape);
    };
    parameter.compute = view(ComputeBuffer(parameter));
    parameter.value = parameter.trainable ? view(values_) : parameter.compute;
  }
  if (adapters_ != nullptr) adapters_->AllocateScales(*this);
}

const at::Tensor& FlatParameters::ComputeBuffer(const Parameter& parameter) const {
  if (parameter.trainable) return compute_;
  return IsMatrix(parameter) ? frozen_matrices_ : frozen_vectors_;
}

const Parameter* FlatParameters::Find(const std::string& name) const {
  for (const Parameter& parameter : parameters_) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

at::Tensor& FlatParameters::gradients() {
  MakeGradients();
  return gradients_.Whole();
}

void FlatParameters::MakeGradients() {
  if (!gradients_.is_whole() || gradients_.allocated()) return;
  const at::Tensor& whole = gradients_.Whole();
  for (Parameter& parameter : parameters_) {
    if (!parameter.trainable) continue;
    parameter.gradient = whole.narrow(0, parameter.offset, parameter.size).view(parameter.shape);
  }
}

void FlatParameters::Shard(const ShardLayout& layout, bool gives_gradients_away) {
  TRAINWRIGHT_CHECK(!shard_ && layout.elements() == values_.numel() && !gradients_.allocated());
  shard_ = layout;
  if (gives_gradients_away) gradients_.GiveAway();
  if (!masters_sharded()) return;
  int64_t copied = 0;
  const auto is_copied = [](const Parameter& parameter) {
    return parameter.trainable && !parameter.of_products;
  };
  for (const Parameter& parameter : parameters_) copied += is_copied(parameter) ? Padded(parameter.size) : 0;
  const at::Tensor copies = at::zeros({copied}, values_.options());
  int64_t place = 0;
  for (Parameter& parameter : parameters_) {
    if (!parameter.trainable) continue;
    const at::Tensor whole = std::exchange(parameter.value, at::Tensor());
    if (!is_copied(parameter)) continue;
    Fp32Copy& copy = fp32_copies_.emplace_back(
        Fp32Copy{parameter.offset, parameter.size, copies.narrow(0, place, parameter.size)});
    place += Padded(parameter.size);
    parameter.value = copy.values.view(parameter.shape);
    parameter.value.copy_(whole);
  }
  at::Tensor own = at::zeros({layout.size()}, values_.options());
  if (!own.is_meta()) {
    layout.ForEachPiece([&](const ShardLayout::Piece& piece) {
      own.narrow(0, piece.place, piece.size).copy_(values_.narrow(0, piece.begin, piece.size));
    });
  }
  values_ = own;
}

at::Tensor FlatParameters::Masters(int64_t begin, int64_t size) {
  return values_.narrow(0, masters_sharded() ? shard_->PlaceOf(begin) : begin, size);
}

at::Tensor& FlatParameters::gradient_shard() {
  TRAINWRIGHT_CHECK(shard_ && gradients_.given_away());
  if (!gradient_shard_.defined()) gradient_shard_ = at::zeros({shard_->size()}, values_.options());
  return gradient_shard_;
}

at::Tensor FlatParameters::GradientView(int64_t offset, int64_t size) {
  MakeGradients();
  return gradients_.View(offset, size);
}

at::Tensor FlatParameters::Gradient(size_t index) {
  const Parameter& parameter = parameters_[index];
  if (!parameter.trainable) return {};
  return GradientView(parameter.offset, parameter.size).view(parameter.shape);
}

void FlatParameters::ForEachGradientPart(const std::function<void(int64_t, at::Tensor&)>& visit) {
  if (!shard_) {
    if (gradients_.is_whole()) return visit(0, gradients());
    return gradients_.ForEachPart(visit);
  }
  const bool compact = gradients_.given_away();
  at::Tensor& all = compact ? gradient_shard() : gradients();
  shard_->ForEachPiece([&](const ShardLayout::Piece& piece) {
    at::Tensor part = all.narrow(0, compact ? piece.place : piece.begin, piece.size);
    visit(piece.begin, part);
  });
}

bool FlatParameters::Adjoin(size_t first, size_t second) const {
  const Parameter &before = parameters_[first], &after = parameters_[second];
  if (before.quantized() || after.quantized()) return before.format == after.format && first + 1 == second;
  return before.trainable == after.trainable && IsMatrix(before) == IsMatrix(after) &&
         before.offset + before.size == after.offset;
}

at::Tensor FlatParameters::ComputeMatrix(size_t index, int64_t rows, int64_t columns) {
  const Parameter& parameter = parameters_[index];
  if (parameter.quantized()) {
    at::Tensor scratch = scratch_.Get({rows, columns}, numerics_.storage, values_.device());
    for (int64_t row = 0; row < rows; row += parameters_[index++].shape[0]) {
      const Parameter& part = parameters_[index];
      TRAINWRIGHT_CHECK(part.quantized() && part.shape[1] == columns && row + part.shape[0] <= rows);
      at::Tensor own = scratch.narrow(0, row, part.shape[0]);
      part.matrix->DequantizeRows(numerics_, 0, own);
    }
    return scratch;
  }
  return ComputeBuffer(parameter).narrow(0, parameter.offset, rows * columns).view({rows, columns});
}

at::Tensor FlatParameters::GradientMatrix(size_t index, int64_t rows, int64_t columns) {
  TRAINWRIGHT_CHECK(parameters_[index].trainable);
  return GradientView(parameters_[index].offset, rows * columns).view({rows, columns});
}

GradientTarget FlatParameters::NextGradient(size_t index, int64_t rows, int64_t columns) {
  TRAINWRIGHT_CHECK(parameters_[index].trainable);
  MakeGradients();
  const int64_t offset = parameters_[index].offset, size = rows * columns;
  const bool written = gradients_.TakeUnwritten(offset, size);
  return {gradients_.View(offset, size).view({rows, columns}), /*accumulate=*/!written};
}

int64_t FlatParameters::trainable_count() const {
  int64_t count = 0;
  for (const Parameter& parameter : parameters_) count += parameter.trainable ? parameter.size : 0;
  return count;
}

int64_t FlatParameters::frozen_bytes() const {
  auto bytes = static_cast<int64_t>(frozen_matrices_.nbytes() + frozen_vectors_.nbytes());
  for (const Parameter& parameter : parameters_)
    bytes += parameter.quantized() ? parameter.matrix->bytes() : 0;
  return bytes;
}

void FlatParameters::Assign(size_t index, const at::Tensor& value) {
  Parameter& parameter = parameters_[index];
  parameter.absent = false;
  TRAINWRIGHT_CHECK(value.sizes() == at::IntArrayRef(parameter.shape) && !masters_sharded());
  if (parameter.quantized()) return parameter.matrix->Quantize(value);
  at::Tensor own = parameter.value;
  own.copy_(value);
  if (RoundsAssigned(parameter)) RoundInto(numerics_, own, own);
}

bool FlatParameters::RoundsAssigned(const Parameter& parameter) const {
  return !parameter.trainable && IsMatrix(parameter) && numerics_.emulated();
}

at::Tensor FlatParameters::AsAssigned(const Parameter& parameter, const at::Tensor& value) const {
  TRAINWRIGHT_CHECK(!parameter.quantized());
  at::Tensor own = value.to(parameter.value.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  if (RoundsAssigned(parameter)) RoundInto(numerics_, own, own);
  return own;
}

void FlatParameters::ZeroGradients() {
  MakeGradients();
  gradients_.Zero();
}

void FlatParameters::RefreshCompute() {
  RoundValues();
  if (!shard_) RefreshScales();
}

void FlatParameters::RefreshScales() {
  if (adapters_ != nullptr) adapters_->RefreshScales(*this);
}

void FlatParameters::RoundValues() {
  if (numerics_.precision == Precision::kFp32) return;
  if (!shard_) return RoundInto(numerics_, values_, compute_);
  shard_->ForEachPiece([&](const ShardLayout::Piece& piece) {
    at::Tensor own = compute_.narrow(0, piece.begin, piece.size);
    RoundInto(numerics_, Masters(piece.begin, piece.size), own);
  });
}

}  // namespace trainwright
