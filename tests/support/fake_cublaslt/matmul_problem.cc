#include "tests/support/fake_cublaslt/matmul_problem.h"

#include <limits>

namespace trainwright::fake_cublaslt {
namespace {

using Result = std::optional<Refusal>;

Refusal Invalid(const std::string& why) {
  return {CUBLAS_STATUS_INVALID_VALUE, why};
}
Refusal Unsupported(const std::string& why) {
  return {CUBLAS_STATUS_NOT_SUPPORTED, why};
}

bool IsFp8(int type) {
  return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

Result CheckLayout(const MatrixLayout* layout, const char* name) {
  const std::string matrix = std::string("matrix ") + name;
  if (layout == nullptr) return Invalid(matrix + " has no layout");
  for (const uint64_t size : {layout->rows, layout->columns}) {
    if (size == 0 || size > static_cast<uint64_t>(std::numeric_limits<int32_t>::max())) {
      return Invalid(matrix + " has " + std::to_string(size) + " rows or columns");
    }
  }
  if (layout->leading < static_cast<int64_t>(layout->rows)) {
    return Invalid(matrix + " has " + std::to_string(layout->rows) + " rows and the leading dimension " +
                   std::to_string(layout->leading));
  }
  if (FormatOf(layout->type) == nullptr) {
    return Unsupported(matrix + " is of type " + std::to_string(layout->type));
  }
  return std::nullopt;
}

Result CheckSizes(MatmulProblem* problem) {
  const auto size = [](uint64_t value) { return static_cast<int64_t>(value); };
  const bool a_transposed = problem->description->transpose_a == CUBLAS_OP_T,
             b_transposed = problem->description->transpose_b == CUBLAS_OP_T;
  problem->m = size(a_transposed ? problem->a->columns : problem->a->rows);
  problem->k = size(a_transposed ? problem->a->rows : problem->a->columns);
  problem->n = size(b_transposed ? problem->b->rows : problem->b->columns);
  if (size(b_transposed ? problem->b->columns : problem->b->rows) != problem->k) {
    return Invalid("A and B differ in their depth");
  }
  for (const MatrixLayout* out : {problem->c, problem->d}) {
    if (size(out->rows) != problem->m || size(out->columns) != problem->n) {
      return Invalid("C or D is not of the size of the GEMM");
    }
  }
  return std::nullopt;
}

/// The rows of the tables at cublasLtMatmul with results of bf16, fp16 and fp32.
Result CheckTypes(const MatmulProblem& problem) {
  const MatmulDescription& description = *problem.description;
  const int a = problem.a->type, b = problem.b->type, c = problem.c->type, d = problem.d->type;
  if (description.scale_type != CUDA_R_32F) return Unsupported("alpha and beta are not fp32");
  const bool all_fp32 = a == CUDA_R_32F && b == CUDA_R_32F && d == CUDA_R_32F;
  if (description.compute_type == CUBLAS_COMPUTE_32F_FAST_TF32) {
    if (!all_fp32) return Unsupported("tf32 is for fp32 matrices");
  } else if (description.compute_type != CUBLAS_COMPUTE_32F) {
    return Unsupported("compute type " + std::to_string(description.compute_type));
  }
  if (c != d) return Unsupported("C and D differ in their type");
  if (IsFp8(d)) return Unsupported("results in fp8");
  if (IsFp8(a) || IsFp8(b)) {
    if (!IsFp8(a) || !IsFp8(b)) return Unsupported("one operand alone is fp8");
    if (a == CUDA_R_8F_E5M2 && b == CUDA_R_8F_E5M2) return Unsupported("both operands are e5m2");
    return std::nullopt;
  }
  if (a != b) return Unsupported("A and B differ in their type");
  if (d != a && d != CUDA_R_32F) return Unsupported("D is neither of the operands' type nor fp32");
  return std::nullopt;
}

/// "To use FP8 kernels, the following set of requirements must be satisfied."
Result CheckFp8(const MatmulProblem& problem) {
  const MatmulDescription& description = *problem.description;
  for (const void* scale : {description.c_scale, description.d_scale}) {
    if (scale != nullptr) return Invalid("a scale of C or D, which are not fp8");
  }
  if (!problem.fp8()) {
    for (const void* scale : {description.a_scale, description.b_scale}) {
      if (scale != nullptr) return Invalid("a scale of A or B, which are not fp8");
    }
    return std::nullopt;
  }
  if (description.transpose_a != CUBLAS_OP_T || description.transpose_b != CUBLAS_OP_N) {
    return Unsupported("fp8 operands other than A transposed and B not");
  }
  const int64_t d_bytes = BytesOf(*FormatOf(problem.d->type));
  for (const int64_t bytes : {problem.m, problem.k, problem.a->leading, problem.b->leading,
                              problem.c->leading * d_bytes, problem.d->leading * d_bytes}) {
    if (bytes % 16 != 0) return Unsupported("fp8 matrices whose lines are not multiples of 16 bytes");
  }
  return std::nullopt;
}

Result CheckEpilogue(const MatmulProblem& problem) {
  const MatmulDescription& description = *problem.description;
  const std::optional<EpilogueParts> parts = PartsOf(description.epilogue);
  if (!parts) return Unsupported("epilogue " + std::to_string(description.epilogue));
  if (parts->has_bias()) {
    if (description.bias == nullptr) return Invalid("an epilogue with a bias, and no pointer to it");
    // Of fp8 operands and fp32 results the documented bias is bf16.
    const int of_bias = problem.fp8() && problem.d->type == CUDA_R_32F ? CUDA_R_16BF : problem.d->type;
    const int type = description.bias_type == -1 ? problem.d->type : description.bias_type;
    if (type != of_bias) return Unsupported("a bias of type " + std::to_string(type));
  }
  if ((parts->sums_a || parts->sums_b) && problem.fp8()) return Unsupported("sums of fp8 operands");
  if (parts->has_aux()) {
    if (description.aux == nullptr)
      return Invalid("an epilogue with an auxiliary matrix, and no pointer to it");
    if (description.aux_leading < problem.m || description.aux_leading % 8 != 0) {
      return Invalid("an auxiliary matrix with the leading dimension " +
                     std::to_string(description.aux_leading));
    }
    if (description.aux_type != -1 && description.aux_type != problem.d->type) {
      return Unsupported("an auxiliary matrix of another type than D");
    }
  }
  return std::nullopt;
}

}  // namespace

bool MatmulProblem::fp8() const {
  return IsFp8(a->type);
}

std::optional<Refusal> Understand(MatmulProblem* problem) {
  if (problem->description == nullptr) return Invalid("no description of the GEMM");
  for (const int32_t operation : {problem->description->transpose_a, problem->description->transpose_b}) {
    if (operation != CUBLAS_OP_N && operation != CUBLAS_OP_T) return Unsupported("a conjugate matrix");
  }
  const struct {
    const MatrixLayout* layout;
    const char* name;
  } matrices[] = {{problem->a, "A"}, {problem->b, "B"}, {problem->c, "C"}, {problem->d, "D"}};
  for (const auto& matrix : matrices) {
    if (Result refusal = CheckLayout(matrix.layout, matrix.name)) return refusal;
  }
  if (Result refusal = CheckSizes(problem)) return refusal;
  if (Result refusal = CheckTypes(*problem)) return refusal;
  if (Result refusal = CheckFp8(*problem)) return refusal;
  return CheckEpilogue(*problem);
}

const NumberFormat* FormatOf(int type) {
  switch (type) {
    case CUDA_R_32F:
      return &kFp32;
    case CUDA_R_16BF:
      return &kBf16;
    case CUDA_R_16F:
      return &kFp16;
    case CUDA_R_8F_E4M3:
      return &kE4m3;
    case CUDA_R_8F_E5M2:
      return &kE5m2;
    default:
      return nullptr;
  }
}

int BytesOf(const NumberFormat& format) {
  return (1 + format.exponent_bits + format.fraction_bits) / 8;
}

std::optional<EpilogueParts> PartsOf(uint32_t epilogue) {
  switch (epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
      return EpilogueParts{.name = "default"};
    case CUBLASLT_EPILOGUE_BIAS:
      return EpilogueParts{.name = "bias", .adds_bias = true};
    case CUBLASLT_EPILOGUE_GELU:
      return EpilogueParts{.name = "gelu", .gelu = true};
    case CUBLASLT_EPILOGUE_GELU_BIAS:
      return EpilogueParts{.name = "gelu_bias", .adds_bias = true, .gelu = true};
    case CUBLASLT_EPILOGUE_GELU_AUX:
      return EpilogueParts{.name = "gelu_aux", .writes_aux = true, .gelu = true};
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
      return EpilogueParts{.name = "gelu_aux_bias", .adds_bias = true, .writes_aux = true, .gelu = true};
    case CUBLASLT_EPILOGUE_DGELU:
      return EpilogueParts{.name = "dgelu", .gelu_gradient = true};
    case CUBLASLT_EPILOGUE_BGRADA:
      return EpilogueParts{.name = "bgrada", .sums_a = true};
    case CUBLASLT_EPILOGUE_BGRADB:
      return EpilogueParts{.name = "bgradb", .sums_b = true};
    default:
      return std::nullopt;
  }
}

}  // namespace trainwright::fake_cublaslt
