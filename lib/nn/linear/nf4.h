/// Weights in 4 bits: NormalFloat with double quantisation, as bitsandbytes stores it.
///
/// The elements of a matrix, row after row, make blocks of 64. A block is divided by its largest magnitude
/// and each quotient takes the nearest of the 16 values of the NF4 code book; the first of two elements has
/// the high half of a byte. The blocks' magnitudes less their mean make blocks of 256 that are quantised in
/// the same way to the 8-bit dynamic map (a sign, a decimal exponent in unary, a linear fraction). 4.127 bits
/// an element. Reading is exact: element = code book value * (dynamic map value * magnitude of 256 + mean),
/// each step rounded to fp32, the same bits by every instruction set.
/// \source Dettmers et al. 2023 (QLoRA), arXiv:2305.14314, sections 3 and appendix E (the code book); the
/// dynamic map: Dettmers 2015, arXiv:1511.04561, section 2
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/nn/linear/nf4_books.h"
#include "lib/nn/precision.h"

namespace trainwright {

/// The CPU's kernel of Nf4Tensor::Dequantize.
void DequantizeNf4OnCpu(const Numerics& numerics, const at::Tensor& code_bytes, const at::Tensor& scale_bytes,
                        const at::Tensor& magnitudes, const at::Tensor& mean_magnitude, at::Tensor& out,
                        int64_t first = 0);

/// A matrix in NF4. Copies share the content.
class Nf4Tensor {
 public:
  Nf4Tensor() = default;
  /// Zeros.
  /// \param size elements
  Nf4Tensor(int64_t size, at::Device device);
  int64_t size() const { return size_; }
  int64_t bytes() const;
  /// What it consists of: two of the same parts are the same matrix.
  std::vector<at::Tensor> parts() const { return {codes_, scales_, scale_magnitudes_, mean_}; }
  /// \param values of `size` elements, any floating type and device. Rounded to fp32 first.
  void Quantize(const at::Tensor& values);
  /// One kernel on every device, with the same bits.
  /// \param out contiguous, the elements from `first` on, of the numerics' storage type; on a device that is
  ///     not the CPU all of them
  void Dequantize(const Numerics& numerics, at::Tensor& out, int64_t first = 0) const;

 private:
  int64_t size_ = 0;
  at::Tensor codes_;                    ///< uint8, two elements each
  at::Tensor scales_;                   ///< uint8, one a block
  at::Tensor scale_magnitudes_, mean_;  ///< fp32, one a block of scales; and one
};

}  // namespace trainwright
