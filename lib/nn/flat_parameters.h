/// All parameters of a model in one aligned fp32 buffer, their gradients in another, and the copy in the
/// compute type.
///
/// Every parameter starts on a 64-byte boundary and the order is fixed by the calls of Add, because a shifted
/// parameter changes the bits of vectorised reductions. One buffer makes the optimizer one call and a
/// checkpoint one write. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/nn/precision.h"

namespace trainwright {

struct Parameter {
  std::string name;  ///< Hugging Face's tensor name
  std::vector<int64_t> shape;
  bool transposed_in_files = false;  ///< model files hold the matrix as [in, out]: transformers' Conv1D
  bool decay = true;    ///< weight decay applies (matrices yes, norms and biases no)
  int64_t offset = 0;   ///< in elements, a multiple of 16
  int64_t size = 0;     ///< elements
  at::Tensor value;     ///< fp32 master, a view into values()
  at::Tensor gradient;  ///< fp32, a view into gradients()
  at::Tensor
      compute;  ///< what forward and backward read: `value` itself under fp32, else the short-type copy
};

/// A tensor that files of a model's family always hold though this model has none: zeros.
struct ZeroTensor {
  std::string name;
  std::vector<int64_t> shape;
};

class FlatParameters {
 public:
  /// Declares a parameter and returns its index. Before Allocate.
  size_t Add(std::string name, std::vector<int64_t> shape, bool decay);
  /// Declares a tensor that files hold and the model does not.
  void AddZeros(std::string name, std::vector<int64_t> shape);
  /// Allocates the values, zeroed, and the compute copy.
  void Allocate(const Numerics& numerics, at::Device device);
  const std::vector<Parameter>& all() const { return parameters_; }
  const std::vector<ZeroTensor>& zeros() const { return zeros_; }
  Parameter& operator[](size_t index) { return parameters_[index]; }
  const Parameter* Find(const std::string& name) const;
  at::Tensor& values() { return values_; }  ///< fp32 [padded elements]
  const at::Tensor& values() const { return values_; }
  /// Same shape as values(); allocated and zeroed at the first call, so that inference does without.
  at::Tensor& gradients();
  /// Whatever buffer of this layout, cut to the matrix that begins at a parameter: consecutive parameters
  /// without padding between them (the three projections of attention, say) read as one.
  at::Tensor Matrix(const at::Tensor& buffer, size_t index, int64_t rows, int64_t columns) const;
  at::Tensor& compute() { return compute_; }  ///< values() itself under fp32
  int64_t count() const { return count_; }    ///< elements of all parameters, padding not counted
  void ZeroGradients();
  /// Recasts the compute copy from the master; after every change of values().
  void RefreshCompute();

 private:
  std::vector<Parameter> parameters_;
  std::vector<ZeroTensor> zeros_;
  at::Tensor values_, gradients_, compute_;
  int64_t count_ = 0, padded_ = 0;
  Numerics numerics_;
};

}  // namespace trainwright
