// The two functions that choose algorithms and multiply.
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/fake_cublaslt/descriptors.h"
#include "tests/support/fake_cublaslt/matmul_compute.h"
#include "tests/support/fake_cublaslt/matmul_problem.h"

namespace trainwright::fake_cublaslt {
namespace {

/// What cublasLtMatmulAlgo_t holds: all that the choice was made for.
struct Choice {
  uint64_t magic;  ///< kMagic: so that memory which no heuristics wrote is found
  Algorithm algorithm;
  int32_t device;
  uint64_t fingerprint;  ///< of the problem
  uint64_t workspace;
  uint32_t alignment, bias_alignment, aux_alignment;        ///< that it relies on
  uint32_t promised_a, promised_b, promised_c, promised_d;  ///< alignments of the preferences
};
static_assert(sizeof(Choice) <= sizeof(cublasLtMatmulAlgo_t));
constexpr uint64_t kMagic = 0x7472'6169'6e77'7274;

uint32_t SchemeOf(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kInPlace:
      return CUBLASLT_REDUCTION_SCHEME_INPLACE;
    case Algorithm::kOutputType:
      return CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    case Algorithm::kSplit:
      return CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    case Algorithm::kAligned:
    case Algorithm::kHungry:
    case Algorithm::kSimple:
      break;
  }
  return CUBLASLT_REDUCTION_SCHEME_NONE;
}

/// Bytes, for all operands; 1: each lies at a multiple of its elements.
uint32_t AlignmentFor(Algorithm algorithm, const MatmulProblem& problem) {
  return algorithm == Algorithm::kAligned || problem.fp8() ? 16 : 1;
}
uint32_t AlignmentOf(const MatrixLayout& layout, uint32_t alignment) {
  return std::max(alignment, static_cast<uint32_t>(BytesOf(*FormatOf(layout.type))));
}
uint32_t AlignmentOf(const void* pointer) {
  uint32_t alignment = 256;
  while (reinterpret_cast<uintptr_t>(pointer) % alignment != 0) alignment /= 2;
  return alignment;
}

/// Of all that heuristics are told but addresses and preferences.
uint64_t FingerprintOf(const MatmulProblem& problem) {
  uint64_t fingerprint = 14695981039346656037u;
  const auto mix = [&](int64_t value) {
    fingerprint = (fingerprint ^ static_cast<uint64_t>(value)) * 1099511628211u;
  };
  for (const MatrixLayout* layout : {problem.a, problem.b, problem.c, problem.d}) {
    for (const int64_t value : {static_cast<int64_t>(layout->type), static_cast<int64_t>(layout->rows),
                                static_cast<int64_t>(layout->columns), layout->leading}) {
      mix(value);
    }
  }
  const MatmulDescription& description = *problem.description;
  for (const int64_t value :
       {static_cast<int64_t>(description.compute_type), int64_t{description.transpose_a},
        int64_t{description.transpose_b}, int64_t{description.epilogue}, int64_t{description.bias_type},
        description.aux_leading, int64_t{description.fast_accumulation}}) {
    mix(value);
  }
  return fingerprint;
}

bool Allows(const Preference& preference, const MatmulProblem& problem, Algorithm algorithm) {
  const uint32_t scheme = SchemeOf(algorithm), alignment = AlignmentFor(algorithm, problem);
  return (scheme == CUBLASLT_REDUCTION_SCHEME_NONE || (scheme & preference.reduction_schemes) != 0) &&
         WorkspaceBytes(algorithm, problem) <= preference.most_workspace &&
         AlignmentOf(*problem.a, alignment) <= preference.alignment_a &&
         AlignmentOf(*problem.b, alignment) <= preference.alignment_b &&
         AlignmentOf(*problem.c, alignment) <= preference.alignment_c &&
         AlignmentOf(*problem.d, alignment) <= preference.alignment_d;
}

std::vector<Choice> ChoicesFor(const cublasLtContext& handle, const MatmulProblem& problem,
                               const Preference& preference) {
  std::vector<Choice> choices;
  for (const Algorithm algorithm : {Algorithm::kInPlace, Algorithm::kAligned, Algorithm::kHungry,
                                    Algorithm::kOutputType, Algorithm::kSplit, Algorithm::kSimple}) {
    if (!Allows(preference, problem, algorithm)) continue;
    choices.push_back({.magic = kMagic,
                       .algorithm = algorithm,
                       .device = handle.device,
                       .fingerprint = FingerprintOf(problem),
                       .workspace = WorkspaceBytes(algorithm, problem),
                       .alignment = AlignmentFor(algorithm, problem),
                       .bias_alignment = AlignmentOf(problem.description->bias),
                       .aux_alignment = AlignmentOf(problem.description->aux),
                       .promised_a = preference.alignment_a,
                       .promised_b = preference.alignment_b,
                       .promised_c = preference.alignment_c,
                       .promised_d = preference.alignment_d});
  }
  return choices;
}

/// That a choice is one for this call.
std::optional<Refusal> CheckChoice(const Choice& choice, const cublasLtContext& handle,
                                   const MatmulProblem& problem, const MatmulMemory& memory,
                                   size_t workspace_size) {
  const auto invalid = [](const std::string& why) { return Refusal{CUBLAS_STATUS_INVALID_VALUE, why}; };
  if (choice.magic != kMagic) return invalid("the algorithm is not one of the heuristics");
  if (choice.fingerprint != FingerprintOf(problem) || choice.device != handle.device) {
    return invalid("the algorithm was chosen for another GEMM");
  }
  if (choice.workspace > workspace_size || (choice.workspace > 0 && memory.workspace == nullptr)) {
    return invalid("the workspace is too small");
  }
  if (reinterpret_cast<uintptr_t>(memory.workspace) % 16 != 0) {
    return invalid("the workspace is not at a multiple of 16 bytes");
  }
  const struct {
    const void* data;
    uint32_t needed, promised;
  } operands[] = {{memory.a, AlignmentOf(*problem.a, choice.alignment), choice.promised_a},
                  {memory.b, AlignmentOf(*problem.b, choice.alignment), choice.promised_b},
                  {memory.c, AlignmentOf(*problem.c, choice.alignment), choice.promised_c},
                  {memory.d, AlignmentOf(*problem.d, choice.alignment), choice.promised_d},
                  {problem.description->bias, choice.bias_alignment, 1},
                  {problem.description->aux, choice.aux_alignment, 1}};
  for (const auto& operand : operands) {
    if (AlignmentOf(operand.data) < operand.needed) {
      return Refusal{CUBLAS_STATUS_NOT_SUPPORTED, "the algorithm relies on a larger alignment"};
    }
    if (AlignmentOf(operand.data) < operand.promised) {
      return Refusal{CUBLAS_STATUS_NOT_SUPPORTED, "the preferences promised a larger alignment"};
    }
  }
  return std::nullopt;
}

std::optional<Refusal> CheckMemory(const MatmulProblem& problem, const MatmulMemory& memory) {
  const auto invalid = [](const std::string& why) { return Refusal{CUBLAS_STATUS_INVALID_VALUE, why}; };
  if (memory.a == nullptr || memory.b == nullptr || memory.d == nullptr ||
      (memory.c == nullptr && memory.beta != 0)) {
    return invalid("a matrix is null");
  }
  const MatrixLayout &c = *problem.c, &d = *problem.d;
  if (memory.c == memory.d && (c.type != d.type || c.leading != d.leading)) {
    return invalid("C and D are one matrix and differ in their layouts");
  }
  return std::nullopt;
}

bool IsOfDevice(cublasLtHandle_t handle) {
  int device = 0;
  return cudaGetDevice(&device) == cudaSuccess && handle->device == device;
}

cublasStatus_t RefuseSearch(const Refusal& refusal) {
  ChangeRecord([](Record* record) { ++record->refused_searches; });
  return Refuse(refusal.status, refusal.why);
}

MatmulProblem ProblemOf(cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                        cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
  return {.description = static_cast<const MatmulDescription*>(description),
          .a = static_cast<const MatrixLayout*>(a),
          .b = static_cast<const MatrixLayout*>(b),
          .c = static_cast<const MatrixLayout*>(c),
          .d = static_cast<const MatrixLayout*>(d)};
}

}  // namespace
}  // namespace trainwright::fake_cublaslt

namespace fake = trainwright::fake_cublaslt;

extern "C" {

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int* found) {
  fake::ChangeRecord([](fake::Record* record) { ++record->searches; });
  if (handle == nullptr) return fake::RefuseSearch({CUBLAS_STATUS_NOT_INITIALIZED, "no handle"});
  if (requested <= 0 || results == nullptr || found == nullptr || preference == nullptr) {
    return fake::RefuseSearch({CUBLAS_STATUS_INVALID_VALUE, "no place for algorithms, or no preference"});
  }
  *found = 0;
  fake::MatmulProblem problem = fake::ProblemOf(description, a, b, c, d);
  if (const auto refusal = fake::Understand(&problem)) return fake::RefuseSearch(*refusal);
  const std::vector<fake::Choice> choices =
      fake::ChoicesFor(*handle, problem, *static_cast<const fake::Preference*>(preference));
  if (choices.empty()) {
    return fake::RefuseSearch({CUBLAS_STATUS_NOT_SUPPORTED, "the preferences leave no algorithm"});
  }
  for (; *found < std::min(requested, static_cast<int>(choices.size())); ++*found) {
    const fake::Choice& choice = choices[static_cast<size_t>(*found)];
    cublasLtMatmulHeuristicResult_t& result = results[*found];
    result = {};
    std::memcpy(&result.algo, &choice, sizeof(choice));
    result.workspaceSize = choice.workspace;
    result.state = CUBLAS_STATUS_SUCCESS;
    result.wavesCount = 1;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t workspace_size,
                              cudaStream_t stream) {
  if (handle == nullptr) return fake::Refuse(CUBLAS_STATUS_NOT_INITIALIZED, "no handle");
  if (!fake::IsOfDevice(handle)) return fake::Refuse(CUBLAS_STATUS_INVALID_VALUE, "another device's handle");
  if (alpha == nullptr || beta == nullptr || algorithm == nullptr) {
    return fake::Refuse(CUBLAS_STATUS_INVALID_VALUE, "no alpha, beta or algorithm");
  }
  fake::MatmulProblem problem = fake::ProblemOf(description, a_layout, b_layout, c_layout, d_layout);
  if (const auto refusal = fake::Understand(&problem)) return fake::Refuse(refusal->status, refusal->why);
  const fake::MatmulMemory memory = {.alpha = *static_cast<const float*>(alpha),
                                     .beta = *static_cast<const float*>(beta),
                                     .a = a,
                                     .b = b,
                                     .c = c,
                                     .d = d,
                                     .workspace = workspace};
  if (const auto refusal = fake::CheckMemory(problem, memory))
    return fake::Refuse(refusal->status, refusal->why);
  fake::Choice choice;
  std::memcpy(&choice, algorithm, sizeof(choice));
  if (const auto refusal = fake::CheckChoice(choice, *handle, problem, memory, workspace_size)) {
    return fake::Refuse(refusal->status, refusal->why);
  }
  fake::Compute(problem, memory, choice.algorithm);
  fake::ChangeRecord([&](fake::Record* record) {
    const std::string epilogue = fake::PartsOf(problem.description->epilogue)->name;
    ++record->products[problem.fp8() ? "fp8 " + epilogue : epilogue];
    record->algorithm = choice.algorithm;
    record->workspace = workspace;
    record->workspace_size = workspace_size;
    record->stream = stream;
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
