#include "lib/nn/linear/int8_matrix.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/base/error.h"
#include "lib/nn/cpu/parallel.h"
#include "lib/nn/linear/quantized_product.h"
#include "lib/nn/linear/quantized_thin_product.h"

namespace trainwright {
namespace {

constexpr float kMostCode = 127;

/// To the nearest integer, ties to even, of a magnitude below 2^51: what is left of the sum has no fraction.
double Rounded(double value) {
  constexpr double kShift = 0x1.8p52;
  return (value + kShift) - kShift;
}

/// The scale of a row: NaN where an element is not finite.
float ScaleOf(const float* row, int64_t size) {
  float largest = 0;
  bool finite = true;
  for (int64_t i = 0; i < size; ++i) {
    finite = finite && std::isfinite(row[i]);
    largest = std::max(largest, std::fabs(row[i]));
  }
  return finite ? largest / kMostCode : std::numeric_limits<float>::quiet_NaN();
}

}  // namespace

Int8Matrix::Int8Matrix(int64_t rows, int64_t depth, at::Device device) : QuantizedMatrix(rows, depth) {
  codes_nk_ = at::zeros({rows, depth}, at::TensorOptions().dtype(at::kChar).device(device));
  scales_n_ = at::zeros({rows}, at::TensorOptions().dtype(at::kFloat).device(device));
}

int64_t Int8Matrix::bytes() const {
  return static_cast<int64_t>(codes_nk_.nbytes() + scales_n_.nbytes());
}

void Int8Matrix::Quantize(const at::Tensor& values_nk) {
  TRAINWRIGHT_CHECK(values_nk.numel() == rows() * depth());
  const at::Tensor host = values_nk.to(at::kCPU, at::kFloat).contiguous();
  const float* values = host.const_data_ptr<float>();
  at::Tensor codes_nk = at::empty({rows(), depth()}, at::kChar), scales_n = at::empty({rows()}, at::kFloat);
  auto* codes = codes_nk.mutable_data_ptr<int8_t>();
  auto* scales = scales_n.mutable_data_ptr<float>();
  cpu::ParallelRows(rows(), depth(), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float scale = ScaleOf(values + row * depth(), depth());
      scales[row] = scale;
      for (int64_t i = row * depth(); i < (row + 1) * depth(); ++i) {
        // In double: a quotient of two fp32 numbers that is no tie does not become one. A scale that is
        // subnormal is rounded so much that quotients may be larger than 127.
        const double code = scale > 0 ? Rounded(double{values[i]} / double{scale}) : 0;
        codes[i] = static_cast<int8_t>(std::clamp(code, -127.0, 127.0));
      }
    }
  });
  codes_nk_.copy_(codes_nk);
  scales_n_.copy_(scales_n);
}

void Int8Matrix::DequantizeRows(const Numerics& numerics, int64_t first, at::Tensor& out_nk) const {
  TRAINWRIGHT_CHECK(out_nk.size(1) == depth() && out_nk.is_contiguous() &&
                    out_nk.scalar_type() == numerics.storage);
  if (out_nk.is_meta()) return;
  const int64_t count = out_nk.size(0);
  TRAINWRIGHT_CHECK(first >= 0 && first + count <= rows());
  if (!out_nk.is_cpu()) {
    at::mul_out(out_nk, codes_nk_.narrow(0, first, count), scales_n_.narrow(0, first, count).unsqueeze(1));
    return;
  }
  const int8_t* codes = codes_nk_.const_data_ptr<int8_t>();
  const float* scales = scales_n_.const_data_ptr<float>();
  const cpu::Codec codec = cpu::CodecOf(numerics);
  auto* out = static_cast<uint8_t*>(out_nk.mutable_data_ptr());
  const auto row_bytes = depth() * static_cast<int64_t>(out_nk.element_size());
  constexpr int64_t kPiece = 1024;  // elements, on the stack
  cpu::ParallelRows(count, depth(), [&](int64_t begin, int64_t end) {
    float values[kPiece];
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t k = 0; k < depth(); k += kPiece) {
        const int64_t size = std::min(kPiece, depth() - k);
        cpu::DequantizeInt8(codes + (first + row) * depth() + k, size, scales[first + row], values);
        cpu::BestKernels().round(codec, values, out + row * row_bytes + k * out_nk.element_size(), 0, size);
      }
    }
  });
}

bool Int8Matrix::MultiplyThin(const at::Tensor& a_mk, at::Tensor& out_mn) const {
  return MultiplyThinInFp32(a_mk, out_mn, [&](const cpu::ThinRows& thin, int64_t begin, int64_t end) {
    cpu::ComputeInt8Product({thin, codes_nk_.const_data_ptr<int8_t>(), scales_n_.const_data_ptr<float>()},
                            begin, end);
  });
}

}  // namespace trainwright
