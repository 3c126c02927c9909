/// A matrix of weights that is kept quantised, whatever its format, and read as it lies.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/nn/precision.h"
#include "lib/spec/weight_format.h"

namespace trainwright {

/// [N, K]: N outputs of a linear layer, K inputs. Reading is thread-safe.
class QuantizedMatrix {
 public:
  QuantizedMatrix(int64_t rows, int64_t depth) : rows_(rows), depth_(depth) {}
  virtual ~QuantizedMatrix() = default;
  QuantizedMatrix(const QuantizedMatrix&) = delete;
  QuantizedMatrix& operator=(const QuantizedMatrix&) = delete;

  int64_t rows() const { return rows_; }
  int64_t depth() const { return depth_; }
  virtual int64_t bytes() const = 0;
  /// What it consists of: two of the same parts are the same matrix.
  virtual std::vector<at::Tensor> parts() const = 0;
  /// \param values_nk any floating type and device. Rounded to fp32 first.
  virtual void Quantize(const at::Tensor& values_nk) = 0;
  /// Rows from `first` on; on a device that is not the CPU all of them.
  /// \param out_nk contiguous, of the numerics' storage type; each element is computed in fp32 and rounded
  ///     once
  virtual void DequantizeRows(const Numerics& numerics, int64_t first, at::Tensor& out_nk) const = 0;
  /// out = a W^T of at most cpu::kMostQuantizedRows rows on a CPU, the weights dequantised in registers. The
  /// bits of a result depend on its own row and column alone.
  /// \param a_mk contiguous, storage type
  /// \param out_mn rows contiguous, fp32 or the storage type
  /// \returns false, and does nothing, where the format has no kernel for it
  [[nodiscard]] virtual bool MultiplyThin(const at::Tensor& a_mk, at::Tensor& out_mn) const = 0;

 private:
  int64_t rows_, depth_;
};

/// Zeros.
/// \param format other than kPlain
std::unique_ptr<QuantizedMatrix> NewQuantizedMatrix(WeightFormat format, int64_t rows, int64_t depth,
                                                    at::Device device);

}  // namespace trainwright
