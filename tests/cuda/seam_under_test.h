/// What tests that every implementation of the seam in lib/nn/cuda/epilogue_product.h shares see of the one
/// that their program is linked with: host_seam.cc or cublaslt/cublaslt_seam.cc.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

#include "lib/nn/cuda/epilogue_product.h"

namespace trainwright {

namespace test {
/// Not of trainwright::cuda: static variables of its functions are the emulated kernels' shared memory.
inline void* ProductWorkspace() {
  static void* const workspace = std::aligned_alloc(256, static_cast<size_t>(cuda::EpilogueWorkspaceBytes()));
  return workspace;
}
}  // namespace test

namespace cuda {

/// Products computed since the last ForgetProducts, by epilogue: "none", "bias", "gelu", "gelu gradient" and
/// "bias gradient"; "fp8" counts those of fp8 operands, "unsupported" those that were refused.
std::map<std::string, int64_t> CountedProducts();
/// How often an algorithm was looked for since then.
int64_t AlgorithmSearches();
/// Whether it forgets the algorithms, too, is its own.
void ForgetProducts();

inline ProductStatus Multiply(const EpilogueProduct& product) {
  return MultiplyWithEpilogue(product, test::ProductWorkspace(), /*stream=*/nullptr);
}

}  // namespace cuda
}  // namespace trainwright
