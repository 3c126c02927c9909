/// cuBLASLt as torch's libtorch_cuda loaded it into the process: found at its first use, so that the plugin
/// names no library which is not there before it.
#pragma once

#include <cublasLt.h>

namespace trainwright::cuda {

/// The functions that GEMMs need.
struct CublasLtFunctions {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtMatmulDescCreate) create_product = nullptr;
  decltype(&cublasLtMatmulDescDestroy) destroy_product = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_of_product = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) create_layout = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_of_preference = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristics = nullptr;
  decltype(&cublasLtMatmul) multiply = nullptr;
};

/// Null where the process has no cuBLASLt of the version that this was compiled for. Thread-safe.
const CublasLtFunctions* CublasLt();

/// Of the current device, made at its first use and never destroyed; null where that fails. Thread-safe.
cublasLtHandle_t CublasLtHandle(const CublasLtFunctions& library);

}  // namespace trainwright::cuda
