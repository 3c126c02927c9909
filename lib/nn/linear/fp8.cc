#include "lib/nn/linear/fp8.h"

#include <ATen/ops/empty.h>

#include <string>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/nn/fp8_ops.h"
#include "lib/nn/linear/micro_kernel.h"

namespace trainwright {

Fp8Matrix::Fp8Matrix(const Numerics& numerics, const at::Tensor& x_rc, Fp8Format format)
    : precision_(numerics.code()),
      x_rc_(x_rc),
      scale_2_(at::empty({2}, x_rc.options().dtype(at::kFloat))),
      format_(format) {
  const ProfileScope scope("fp8_scale", ProfilePart::kGemm);
  ops::Fp8Scale(x_rc_, static_cast<int64_t>(format), precision_, scale_2_);
}

Fp8Operand Fp8Matrix::Encode(bool columns) const {
  const ProfileScope scope("fp8_encode", ProfilePart::kGemm);
  const int64_t lines = x_rc_.size(columns ? 1 : 0),
                depth = cpu::RoundUp(x_rc_.size(columns ? 0 : 1), kFp8Multiple);
  Fp8Operand operand = {at::empty({lines, depth}, x_rc_.options().dtype(at::kByte)), scale_2_, format_};
  ops::Fp8Encode(x_rc_, scale_2_, static_cast<int64_t>(format_), columns, precision_, operand.codes_lk);
  return operand;
}

void Multiply(const Fp8Operand& a_mk, const Fp8Operand& b_nk, at::Tensor& out_mn, bool accumulate) {
  const int64_t depth = a_mk.codes_lk.size(1);
  TRAINWRIGHT_CHECK(depth == b_nk.codes_lk.size(1) && out_mn.size(0) == a_mk.codes_lk.size(0) &&
                    out_mn.size(1) == b_nk.codes_lk.size(0));
  // On a CPU the GEMM within counts its operations itself.
  const ProfileScope scope("fp8_product", ProfilePart::kGemm,
                           out_mn.is_cpu() ? 0 : 2 * out_mn.numel() * depth);
  if (ops::Fp8Product(a_mk.codes_lk, a_mk.scale_2, static_cast<int64_t>(a_mk.format), b_nk.codes_lk,
                      b_nk.scale_2, static_cast<int64_t>(b_nk.format), accumulate, out_mn)) {
    return;
  }
  throw Error(ErrorCode::kDevice, "--fp8",
              "cuBLASLt has no fp8 kernel for a GEMM of " + std::to_string(out_mn.size(0)) + " x " +
                  std::to_string(depth) + " x " + std::to_string(out_mn.size(1)),
              "", "use --fp8 off; a run that began with fp8 continues so by --branch-from");
}

int64_t Fp8Bytes(int64_t rows, int64_t in_features, int64_t out_features, bool on_cpu) {
  const int64_t depth = cpu::RoundUp(rows, kFp8Multiple);
  const int64_t codes = depth * (2 * out_features + in_features) + in_features * out_features;
  if (!on_cpu) return codes;
  // The values of a GEMM's two operands, its sums, and codes before they are transposed.
  constexpr int64_t kValueBytes = 4, kSumBytes = 4;
  return 2 * codes + kValueBytes * rows * (in_features + out_features) +
         kSumBytes * in_features * out_features;
}

}  // namespace trainwright
