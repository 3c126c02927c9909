/// What descriptors hold, as the functions that set them left it.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <functional>
#include <string>

#include "tests/support/fake_cublaslt/fake_cublaslt.h"

/// A handle.
struct cublasLtContext {
  int device = 0;
};

namespace trainwright::fake_cublaslt {

/// Counted by LiveDescriptors.
class Counted {
 public:
  Counted();
  ~Counted();
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
};

struct MatrixLayout : cublasLtMatrixLayoutOpaque_t, Counted {
  cudaDataType_t type = CUDA_R_32F;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0;
};

/// With the defaults of cublasLt.h.
struct MatmulDescription : cublasLtMatmulDescOpaque_t, Counted {
  cublasComputeType_t compute_type = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale_type = CUDA_R_32F;
  int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  int32_t bias_type = -1;
  const void* aux = nullptr;
  int64_t aux_leading = 0;
  int32_t aux_type = -1;
  const void *a_scale = nullptr, *b_scale = nullptr, *c_scale = nullptr, *d_scale = nullptr;
  int8_t fast_accumulation = 0;
};

struct Preference : cublasLtMatmulPreferenceOpaque_t, Counted {
  uint64_t most_workspace = 0;
  uint32_t reduction_schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignment_a = 256, alignment_b = 256, alignment_c = 256, alignment_d = 256;
};

/// Keeps why a call is refused for Recorded.
/// \returns the status
cublasStatus_t Refuse(cublasStatus_t status, const std::string& why);
/// Under the lock of the record.
void ChangeRecord(const std::function<void(Record*)>& change);

}  // namespace trainwright::fake_cublaslt
