#include "lib/nn/linear/chosen_matmul.h"

#include <ATen/ops/empty_like.h>

#include <string>

#include "lib/base/profile_scope.h"
#include "lib/nn/linear/matmul.h"
#include "lib/nn/product_ops.h"
#include "lib/spec/product_rows.h"

namespace trainwright {
namespace {

std::string NameOf(const at::Tensor& a_mk, const at::Tensor& b_kn, const at::Tensor& out_mn) {
  const auto type = [](const at::Tensor& matrix) -> std::string {
    switch (matrix.scalar_type()) {
      case at::kBFloat16:
        return "bf16";
      case at::kHalf:
        return "fp16";
      default:
        return "fp32";
    }
  };
  const auto layout = [](const at::Tensor& matrix) { return matrix.stride(1) == 1 ? "n" : "t"; };
  return "matmul " + type(a_mk) + "->" + type(out_mn) + " " + layout(a_mk) + layout(b_kn) + " " +
         std::to_string(RowsOfProduct(a_mk.size(0))) + "x" + std::to_string(RowsOfProduct(a_mk.size(1))) +
         "x" + std::to_string(b_kn.size(1));
}

/// \returns false where the library does not have the kernel, and has written nothing
bool TryLibrary(int64_t candidate, const at::Tensor& a_mk, const at::Tensor& b_kn, bool accumulate,
                at::Tensor& out_mn) {
  OpaqueProfileScope scope("matmul", ProfilePart::kGemm);
  const bool computed = ops::Multiply(a_mk, b_kn, accumulate, candidate - 1, out_mn);
  if (computed) scope.Count(2 * out_mn.numel() * a_mk.size(1));
  return computed;
}

}  // namespace

void ChosenMatmul(const at::Tensor& a_mk, const at::Tensor& b_kn, at::Tensor& out_mn, bool accumulate,
                  ProductChooser* chooser) {
  const bool chooses = chooser != nullptr && chooser->chooses() && !out_mn.is_cpu() && !out_mn.is_meta();
  if (!chooses || out_mn.numel() == 0 || a_mk.size(1) == 0) {
    return Matmul(a_mk, b_kn, out_mn, accumulate);
  }
  const auto compute = [&](int64_t tried) {
    at::Tensor out = accumulate ? at::empty_like(out_mn) : out_mn;
    if (tried > 0) return TryLibrary(tried, a_mk, b_kn, /*accumulate=*/false, out);
    Matmul(a_mk, b_kn, out);
    return true;
  };
  const int64_t candidate = chooser->CandidateOf(NameOf(a_mk, b_kn, out_mn), out_mn.device(), compute);
  if (candidate > 0 && TryLibrary(candidate, a_mk, b_kn, accumulate, out_mn)) return;
  Matmul(a_mk, b_kn, out_mn, accumulate);
}

}  // namespace trainwright
