/// What a GEMM that is allowed computes, by plain loops in double.
#pragma once

#include <cstdint>

#include "tests/support/fake_cublaslt/fake_cublaslt.h"
#include "tests/support/fake_cublaslt/matmul_problem.h"

namespace trainwright::fake_cublaslt {

struct MatmulMemory {
  float alpha = 0, beta = 0;
  const void *a = nullptr, *b = nullptr, *c = nullptr;
  void *d = nullptr, *workspace = nullptr;
};

/// Bytes of the workspace that an algorithm writes.
uint64_t WorkspaceBytes(Algorithm algorithm, const MatmulProblem& problem);

/// Each result is rounded to its type once; partial sums of algorithms that split the depth are, too.
void Compute(const MatmulProblem& problem, const MatmulMemory& memory, Algorithm algorithm);

}  // namespace trainwright::fake_cublaslt
