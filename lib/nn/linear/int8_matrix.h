/// Weights in 8 bits: symmetric, with one fp32 scale a row.
///
/// The scale of a row is its largest magnitude over 127, rounded to fp32; a code is the quotient of element
/// and scale, rounded to nearest, ties to even. Reading: element = code * scale, rounded to fp32. 8 bits an
/// element and 32 a row. A row with an element that is not finite reads as NaN.
///
/// Few rows are multiplied with the codes themselves, which are exact in fp32, and each fp32 sum with its
/// scale: weights are not rounded to the storage type then, as DequantizeRows does.
#pragma once

#include "lib/nn/linear/quantized_matrix.h"

namespace trainwright {

class Int8Matrix final : public QuantizedMatrix {
 public:
  Int8Matrix(int64_t rows, int64_t depth, at::Device device);
  int64_t bytes() const override;
  std::vector<at::Tensor> parts() const override { return {codes_nk_, scales_n_}; }
  void Quantize(const at::Tensor& values_nk) override;
  void DequantizeRows(const Numerics& numerics, int64_t first, at::Tensor& out_nk) const override;
  [[nodiscard]] bool MultiplyThin(const at::Tensor& a_mk, at::Tensor& out_mn) const override;

 private:
  at::Tensor codes_nk_;  ///< int8, from -127 to 127
  at::Tensor scales_n_;  ///< fp32
};

}  // namespace trainwright
