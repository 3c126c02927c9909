#include "lib/nn/linear/matmul.h"

#include <ATen/Parallel.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/nn/linear/block_matmul.h"
#include "lib/nn/linear/gemm_kernels.h"
#include "lib/nn/linear/micro_kernel.h"
#include "lib/nn/linear/thin_product.h"

namespace trainwright {
namespace {

/// As the block product takes it; false when no stride is 1.
bool View(const at::Tensor& tensor, cpu::MatrixView* view) {
  view->data = tensor.const_data_ptr();
  view->transposed = tensor.stride(1) != 1 && tensor.size(1) != 1;
  view->stride = view->transposed ? tensor.stride(1) : tensor.stride(0);
  return (view->transposed ? tensor.stride(0) : tensor.stride(1)) == 1;
}

bool TryBlocks(const at::Tensor& a_mk, const at::Tensor& b_kn, at::Tensor& out_mn, bool accumulate) {
  const bool bf16 = a_mk.scalar_type() == at::kBFloat16;
  if (!a_mk.is_cpu() || !(bf16 || a_mk.scalar_type() == at::kFloat)) return false;
  if (!bf16 && ChosenCpuGemms().fp32 == CpuGemms::Fp32::kLibrary) return false;
  cpu::BlockProduct product = {.m = a_mk.size(0), .n = b_kn.size(1), .k = a_mk.size(1), .bf16 = bf16};
  if (!View(a_mk, &product.a) || !View(b_kn, &product.b) || out_mn.stride(1) != 1) return false;
  product.out = out_mn.mutable_data_ptr();
  product.out_stride = out_mn.stride(0);
  product.out_bf16 = out_mn.scalar_type() == at::kBFloat16;
  product.accumulate = accumulate;
  product.widens = cpu::WidensBf16();
  return cpu::BlockMatmul(product);
}

/// Few rows times the transpose of a matrix whose rows are contiguous: a weight.
bool TryThin(const at::Tensor& a_mk, const at::Tensor& b_kn, at::Tensor& out_mn, bool accumulate) {
  const bool bf16 = a_mk.scalar_type() == at::kBFloat16;
  if (!a_mk.is_cpu() || !(bf16 || a_mk.scalar_type() == at::kFloat)) return false;
  if (a_mk.size(0) < 1 || a_mk.size(0) > cpu::kMostThinRows) return false;
  if (a_mk.stride(1) != 1 || b_kn.stride(0) != 1 || out_mn.stride(1) != 1) return false;
  const cpu::ThinProduct product = {.rows = a_mk.size(0),
                                    .depth = a_mk.size(1),
                                    .bf16 = bf16,
                                    .a = a_mk.const_data_ptr(),
                                    .w = b_kn.const_data_ptr(),
                                    .a_stride = a_mk.stride(0),
                                    .w_stride = b_kn.stride(1),
                                    .out = out_mn.mutable_data_ptr(),
                                    .out_stride = out_mn.stride(0),
                                    .out_bf16 = out_mn.scalar_type() == at::kBFloat16,
                                    .accumulate = accumulate};
  constexpr int64_t kElementsAThread = 32768;
  at::parallel_for(0, b_kn.size(1), kElementsAThread / (product.depth + 1) + 1,
                   [&](int64_t begin, int64_t end) { cpu::ComputeThinProduct(product, begin, end); });
  return true;
}

}  // namespace

void Matmul(const at::Tensor& a_mk, const at::Tensor& b_kn, at::Tensor& out_mn, bool accumulate) {
  TRAINWRIGHT_CHECK(a_mk.size(1) == b_kn.size(0) && out_mn.size(0) == a_mk.size(0) &&
                    out_mn.size(1) == b_kn.size(1));
  if (out_mn.is_meta()) return;  // nothing to compute
  const ProfileScope scope("matmul", ProfilePart::kGemm, 2 * out_mn.numel() * a_mk.size(1));
  if (TryThin(a_mk, b_kn, out_mn, accumulate) || TryBlocks(a_mk, b_kn, out_mn, accumulate)) return;
  if (out_mn.scalar_type() != a_mk.scalar_type()) {
    if (!a_mk.is_cpu()) {  // the product is not rounded before the sum
      if (accumulate) {
        at::addmm_out(out_mn, out_mn, a_mk, b_kn, out_mn.scalar_type());
      } else {
        at::mm_out(out_mn, a_mk, b_kn, out_mn.scalar_type());
      }
      return;
    }
    const at::Tensor product = at::mm(a_mk.to(out_mn.scalar_type()), b_kn.to(out_mn.scalar_type()));
    if (accumulate) {
      out_mn.add_(product);
    } else {
      out_mn.copy_(product);
    }
  } else if (accumulate) {
    at::addmm_out(out_mn, out_mn, a_mk, b_kn);
  } else {
    at::mm_out(out_mn, a_mk, b_kn);
  }
}

void ScaledMatmul(const at::Tensor& a_mk, const at::Tensor& b_kn, double scale, at::Tensor& out_mn) {
  TRAINWRIGHT_CHECK(!a_mk.is_cpu() && a_mk.size(1) == b_kn.size(0) && out_mn.size(0) == a_mk.size(0) &&
                    out_mn.size(1) == b_kn.size(1) && out_mn.scalar_type() == a_mk.scalar_type());
  if (out_mn.is_meta()) return;
  const ProfileScope scope("matmul", ProfilePart::kGemm, 2 * out_mn.numel() * a_mk.size(1));
  at::addmm_out(out_mn, out_mn, a_mk, b_kn, /*beta=*/0, /*alpha=*/scale);
}

}  // namespace trainwright
