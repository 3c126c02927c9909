/// A GEMM as its descriptors together describe it, and what NVIDIA's documentation says of which are allowed.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <optional>
#include <string>

#include "tests/support/fake_cublaslt/descriptors.h"
#include "tests/support/fake_cublaslt/number_format.h"

namespace trainwright::fake_cublaslt {

/// D = alpha op(A) op(B) + beta C, then its epilogue. D [m, n], op(A) [m, k], op(B) [k, n].
struct MatmulProblem {
  const MatmulDescription* description = nullptr;
  const MatrixLayout *a = nullptr, *b = nullptr, *c = nullptr, *d = nullptr;
  int64_t m = 0, n = 0, k = 0;

  bool fp8() const;
};

/// Why a library does not take a call.
struct Refusal {
  cublasStatus_t status;
  std::string why;
};

/// \param problem with its descriptors set; gets its sizes
/// \returns nullopt: it is allowed
std::optional<Refusal> Understand(MatmulProblem* problem);

/// Of the types that the library knows; nullptr of others.
const NumberFormat* FormatOf(int type);
int BytesOf(const NumberFormat& format);

struct EpilogueParts {
  const char* name;
  bool adds_bias = false, writes_aux = false, gelu = false, gelu_gradient = false;
  bool sums_a = false, sums_b = false;  ///< into the bias

  bool has_bias() const { return adds_bias || sums_a || sums_b; }
  bool has_aux() const { return writes_aux || gelu_gradient; }
};
/// nullopt: it does not know that one.
std::optional<EpilogueParts> PartsOf(uint32_t epilogue);

}  // namespace trainwright::fake_cublaslt
