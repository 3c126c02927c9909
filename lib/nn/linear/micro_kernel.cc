#include "lib/nn/linear/micro_kernel.h"

#include <ATen/native/CPUBlas.h>

#include "lib/nn/linear/gemm_kernels.h"

namespace trainwright::cpu {

bool HasMicroKernels(bool bf16) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         (!bf16 || __builtin_cpu_supports("avx512bf16"));
#else
  return false;
#endif
}

bool WidensBf16() {
  return ChosenCpuGemms().bf16 == CpuGemms::Bf16::kWidened;
}

void Multiply(const MicroProduct& p) {
  using at::native::cpublas::brgemm;
  if (p.bf16) {
    brgemm(p.rows, p.columns, p.depth, p.left_stride, p.right_stride, p.out_stride, p.accumulate,
           static_cast<const at::BFloat16*>(p.left), static_cast<const at::BFloat16*>(p.right), p.out,
           /*is_vnni=*/true);
  } else {
    brgemm(p.rows, p.columns, p.depth, p.left_stride, p.right_stride, p.out_stride, p.accumulate,
           static_cast<const float*>(p.left), static_cast<const float*>(p.right), p.out, /*is_vnni=*/false);
  }
}

void ReleaseMicroKernels(bool bf16) {
  at::native::cpublas::brgemm_release(bf16);
}

}  // namespace trainwright::cpu
