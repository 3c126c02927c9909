#include "lib/nn/fp8_ops.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <string.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>

#include "lib/nn/cpu/parallel.h"
#include "lib/nn/find_operator.h"
#include "lib/nn/linear/fp8_format.h"
#include "lib/nn/linear/gemm_kernels.h"
#include "lib/nn/linear/matmul.h"
#include "lib/nn/precision.h"

namespace trainwright::ops {

void Fp8Scale(const at::Tensor& x_rc, int64_t format, int64_t precision, at::Tensor& scale_2) {
  static const auto op = Find<decltype(Fp8Scale)>("trainwright::fp8_scale");
  op.call(x_rc, format, precision, scale_2);
}

void Fp8Encode(const at::Tensor& x_rc, const at::Tensor& scale_2, int64_t format, bool columns,
               int64_t precision, at::Tensor& codes_lk) {
  static const auto op = Find<decltype(Fp8Encode)>("trainwright::fp8_encode");
  op.call(x_rc, scale_2, format, columns, precision, codes_lk);
}

bool Fp8Product(const at::Tensor& a_mk, const at::Tensor& a_scale_2, int64_t a_format, const at::Tensor& b_nk,
                const at::Tensor& b_scale_2, int64_t b_format, bool accumulate, int64_t candidate,
                at::Tensor& out_mn) {
  static const auto op = Find<decltype(Fp8Product)>("trainwright::fp8_product");
  return op.call(a_mk, a_scale_2, a_format, b_nk, b_scale_2, b_format, accumulate, candidate, out_mn);
}

namespace {
namespace on_cpu {

float BitsToFloat(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}
[[maybe_unused]] uint32_t FloatToBits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

#define TRAINWRIGHT_FP8 inline
#include "lib/nn/linear/fp8_body.h"

cpu::Codec CodecOf(int64_t precision, const at::Tensor& stored) {
  return cpu::CodecOf({static_cast<Precision>(precision), stored.scalar_type()});
}

/// Calls visit(row, its first element, columns).
template <typename Visit>
void ForEachRow(const at::Tensor& x_rc, const Visit& visit) {
  const int64_t columns = x_rc.size(1), bytes = x_rc.element_size(), stride = x_rc.stride(0);
  const auto* data = static_cast<const char*>(x_rc.const_data_ptr());
  cpu::ParallelRows(x_rc.size(0), columns, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) visit(row, data + row * stride * bytes, columns);
  });
}

void Fp8Scale(const at::Tensor& x_rc, int64_t format, int64_t precision, at::Tensor& scale_2) {
  TORCH_CHECK(x_rc.size(1) <= 1 || x_rc.stride(1) == 1, "fp8 takes matrices of contiguous rows");
  const cpu::Codec codec = CodecOf(precision, x_rc);
  std::atomic<uint32_t> largest = 0;
  ForEachRow(x_rc, [&](int64_t, const void* row, int64_t columns) {
    const uint32_t of_row = cpu::BestKernels().largest_bits(codec, row, 0, columns);
    uint32_t seen = largest.load();
    while (seen < of_row && !largest.compare_exchange_weak(seen, of_row)) {
    }
  });
  const struct Fp8Scale scale = ScaleOf(largest, LargestOf(static_cast<Fp8Format>(format)));
  auto* const out = scale_2.mutable_data_ptr<float>();
  out[0] = scale.scale;
  out[1] = scale.factor;
}

void Fp8Encode(const at::Tensor& x_rc, const at::Tensor& scale_2, int64_t format, bool columns,
               int64_t precision, at::Tensor& codes_lk) {
  TORCH_CHECK(x_rc.size(1) <= 1 || x_rc.stride(1) == 1, "fp8 takes matrices of contiguous rows");
  const int64_t rows = x_rc.size(0), width = x_rc.size(1), depth = codes_lk.size(1);
  TORCH_CHECK(codes_lk.is_contiguous() && codes_lk.size(0) == (columns ? width : rows) &&
                  depth >= (columns ? rows : width),
              "codes of another shape");
  if (depth > (columns ? rows : width)) codes_lk.zero_();
  at::Tensor by_rows = columns ? at::empty({rows, width}, codes_lk.options()) : codes_lk;
  const cpu::Codec codec = CodecOf(precision, x_rc);
  const float factor = scale_2.const_data_ptr<float>()[1];
  auto* const codes = by_rows.mutable_data_ptr<uint8_t>();
  ForEachRow(x_rc, [&](int64_t row, const void* values, int64_t count) {
    cpu::BestKernels().fp8_encode(codec, static_cast<Fp8Format>(format), values, factor,
                                  codes + row * by_rows.size(1), 0, count);
  });
  if (columns) codes_lk.narrow(1, 0, rows).copy_(by_rows.t());
}

/// Values that a GEMM multiplies exactly: bf16 where the CPU has kernels of it.
at::Tensor Decoded(const at::Tensor& codes_lk, int64_t format) {
  const bool bf16 = ChosenCpuGemms().bf16 != CpuGemms::Bf16::kEmulated;
  at::Tensor values =
      at::empty(codes_lk.sizes(), codes_lk.options().dtype(bf16 ? at::kBFloat16 : at::kFloat));
  const auto* codes = codes_lk.const_data_ptr<uint8_t>();
  void* const out = values.mutable_data_ptr();
  constexpr int64_t kBlock = 4096;
  at::parallel_for(0, codes_lk.numel(), kBlock, [&](int64_t begin, int64_t end) {
    cpu::BestKernels().fp8_decode(bf16 ? cpu::Codec::kBf16 : cpu::Codec::kFp32,
                                  static_cast<Fp8Format>(format), codes, out, begin, end);
  });
  return values;
}

bool Fp8Product(const at::Tensor& a_mk, const at::Tensor& a_scale_2, int64_t a_format, const at::Tensor& b_nk,
                const at::Tensor& b_scale_2, int64_t b_format, bool accumulate, int64_t candidate,
                at::Tensor& out_mn) {
  if (candidate > 0) return false;
  const at::Tensor a = Decoded(a_mk, a_format), b = Decoded(b_nk, b_format);
  at::Tensor sums_mn = at::empty(out_mn.sizes(), out_mn.options().dtype(at::kFloat));
  Matmul(a, b.t(), sums_mn);
  sums_mn.mul_(a_scale_2.narrow(0, 0, 1)).mul_(b_scale_2.narrow(0, 0, 1));
  if (accumulate) {
    out_mn.add_(sums_mn);
  } else {
    out_mn.copy_(sums_mn);
  }
  return true;
}

}  // namespace on_cpu

TORCH_LIBRARY_FRAGMENT(trainwright, library) {
  library.def("fp8_scale(Tensor x, int format, int precision, Tensor(a!) scale) -> ()");
  library.def(
      "fp8_encode(Tensor x, Tensor scale, int format, bool columns, int precision, Tensor(a!) codes) -> ()");
  library.def(
      "fp8_product(Tensor a, Tensor a_scale, int a_format, Tensor b, Tensor b_scale, int b_format, "
      "bool accumulate, int candidate, Tensor(a!) out) -> bool");
}

TORCH_LIBRARY_IMPL(trainwright, CPU, library) {
  library.impl("fp8_scale", &on_cpu::Fp8Scale);
  library.impl("fp8_encode", &on_cpu::Fp8Encode);
  library.impl("fp8_product", &on_cpu::Fp8Product);
}

TORCH_LIBRARY_IMPL(trainwright, Meta, library) {
  library.impl(
      "fp8_scale", +[](const at::Tensor&, int64_t, int64_t, at::Tensor&) {});
  library.impl(
      "fp8_encode", +[](const at::Tensor&, const at::Tensor&, int64_t, bool, int64_t, at::Tensor&) {});
  library.impl(
      "fp8_product", +[](const at::Tensor&, const at::Tensor&, int64_t, const at::Tensor&, const at::Tensor&,
                         int64_t, bool, int64_t, at::Tensor&) { return true; });
}

}  // namespace
}  // namespace trainwright::ops
