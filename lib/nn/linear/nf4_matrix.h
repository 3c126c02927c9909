/// A matrix in NF4 (nf4.h), of which a GEMM with few rows reads the codes as they lie.
///
/// The fused kernel is there for depths that are multiples of 64, whose rows are whole blocks of codes. Of up
/// to cpu::kMostThinRows rows it gives in fp32 the bits of the GEMM with the dequantised matrix; in other
/// precisions it does not round weights to the storage type, as DequantizeRows does.
#pragma once

#include "lib/nn/linear/nf4.h"
#include "lib/nn/linear/quantized_matrix.h"

namespace trainwright {

class Nf4Matrix final : public QuantizedMatrix {
 public:
  Nf4Matrix(int64_t rows, int64_t depth, at::Device device)
      : QuantizedMatrix(rows, depth), tensor_(rows * depth, device) {}
  int64_t bytes() const override { return tensor_.bytes(); }
  std::vector<at::Tensor> parts() const override { return tensor_.parts(); }
  void Quantize(const at::Tensor& values_nk) override { tensor_.Quantize(values_nk); }
  void DequantizeRows(const Numerics& numerics, int64_t first, at::Tensor& out_nk) const override {
    tensor_.Dequantize(numerics, out_nk, first * depth());
  }
  [[nodiscard]] bool MultiplyThin(const at::Tensor& a_mk, at::Tensor& out_mn) const override;

 private:
  Nf4Tensor tensor_;
};

}  // namespace trainwright
