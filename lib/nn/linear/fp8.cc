#include "lib/nn/linear/fp8.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <string>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/nn/fp8_ops.h"
#include "lib/nn/linear/micro_kernel.h"
#include "lib/spec/product_rows.h"

namespace trainwright {

namespace {

/// As of product_choices.h. A micro-batch's tokens are rows of its GEMMs, or their depth.
std::string NameOf(const Fp8Operand& a_mk, const Fp8Operand& b_nk, const at::Tensor& out_mn) {
  const auto letter = [](Fp8Format format) { return format == Fp8Format::kE4m3 ? "e4m3" : "e5m2"; };
  return std::string("fp8_product ") + letter(a_mk.format) + "*" + letter(b_nk.format) + "->" +
         (out_mn.scalar_type() == at::kFloat ? "fp32" : "bf16") + " " +
         std::to_string(RowsOfProduct(out_mn.size(0))) + "x" +
         std::to_string(RowsOfProduct(a_mk.codes_lk.size(1))) + "x" + std::to_string(out_mn.size(1));
}

}  // namespace

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

void Multiply(const Fp8Operand& a_mk, const Fp8Operand& b_nk, at::Tensor& out_mn, bool accumulate,
              ProductChooser* chooser) {
  const int64_t depth = a_mk.codes_lk.size(1);
  TRAINWRIGHT_CHECK(depth == b_nk.codes_lk.size(1) && out_mn.size(0) == a_mk.codes_lk.size(0) &&
                    out_mn.size(1) == b_nk.codes_lk.size(0));
  // On a CPU the GEMM within counts its operations itself.
  const ProfileScope scope("fp8_product", ProfilePart::kGemm,
                           out_mn.is_cpu() ? 0 : 2 * out_mn.numel() * depth);
  const auto compute = [&](int64_t candidate, at::Tensor& out) {
    return ops::Fp8Product(a_mk.codes_lk, a_mk.scale_2, static_cast<int64_t>(a_mk.format), b_nk.codes_lk,
                           b_nk.scale_2, static_cast<int64_t>(b_nk.format), accumulate, candidate, out);
  };
  int64_t candidate = 0;
  if (chooser != nullptr && out_mn.numel() > 0) {
    candidate = chooser->CandidateOf(NameOf(a_mk, b_nk, out_mn), out_mn.device(), [&](int64_t tried) {
      at::Tensor out = at::empty_like(out_mn);
      return compute(tried, out);
    });
  }
  if (compute(candidate, out_mn)) return;
  if (candidate != 0 && compute(0, out_mn)) return;  // chosen for a shape that is a little larger
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
