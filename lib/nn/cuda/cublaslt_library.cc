#include "lib/nn/cuda/cublaslt_library.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace trainwright::cuda {
namespace {

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

std::optional<CublasLtFunctions> Load() {
  const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  CublasLtFunctions found;
  const bool all = Find(library, "cublasLtCreate", &found.create) &&
                   Find(library, "cublasLtMatmulDescCreate", &found.create_product) &&
                   Find(library, "cublasLtMatmulDescDestroy", &found.destroy_product) &&
                   Find(library, "cublasLtMatmulDescSetAttribute", &found.set_of_product) &&
                   Find(library, "cublasLtMatrixLayoutCreate", &found.create_layout) &&
                   Find(library, "cublasLtMatrixLayoutDestroy", &found.destroy_layout) &&
                   Find(library, "cublasLtMatmulPreferenceCreate", &found.create_preference) &&
                   Find(library, "cublasLtMatmulPreferenceDestroy", &found.destroy_preference) &&
                   Find(library, "cublasLtMatmulPreferenceSetAttribute", &found.set_of_preference) &&
                   Find(library, "cublasLtMatmulAlgoGetHeuristic", &found.heuristics) &&
                   Find(library, "cublasLtMatmul", &found.multiply);
  return all ? std::optional(found) : std::nullopt;
}

}  // namespace

const CublasLtFunctions* CublasLt() {
  static const std::optional<CublasLtFunctions> library = Load();
  return library ? &*library : nullptr;
}

cublasLtHandle_t CublasLtHandle(const CublasLtFunctions& library) {
  // A handle is of one device, and as the library it lives as long as the process.
  static std::mutex mutex;
  static auto* const handles = new std::map<int, cublasLtHandle_t>;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [handle, fresh] = handles->try_emplace(device, nullptr);
  if (fresh && library.create(&handle->second) != CUBLAS_STATUS_SUCCESS) handle->second = nullptr;
  return handle->second;
}

}  // namespace trainwright::cuda
