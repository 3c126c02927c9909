#include "tests/support/fake_cublaslt/descriptors.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstring>
#include <mutex>

namespace trainwright::fake_cublaslt {
namespace {

struct State {
  std::mutex mutex;
  Record record;
  std::atomic<int64_t> live = 0;
  std::atomic<int> device = 0;
};
State& TheState() {
  static auto* const state = new State;
  return *state;
}

/// Takes the value of an attribute.
template <typename Value>
cublasStatus_t Take(const void* buffer, size_t size, Value* value) {
  if (buffer == nullptr || size != sizeof(Value)) {
    return Refuse(CUBLAS_STATUS_INVALID_VALUE, "an attribute of " + std::to_string(sizeof(Value)) +
                                                   " bytes was set from " + std::to_string(size));
  }
  std::memcpy(value, buffer, size);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t SetOf(MatmulDescription* description, cublasLtMatmulDescAttributes_t attribute,
                     const void* buffer, size_t size) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return Take(buffer, size, &description->transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return Take(buffer, size, &description->transpose_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return Take(buffer, size, &description->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return Take(buffer, size, &description->bias);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return Take(buffer, size, &description->bias_type);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return Take(buffer, size, &description->aux);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return Take(buffer, size, &description->aux_leading);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
      return Take(buffer, size, &description->aux_type);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
      return Take(buffer, size, &description->a_scale);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
      return Take(buffer, size, &description->b_scale);
    case CUBLASLT_MATMUL_DESC_C_SCALE_POINTER:
      return Take(buffer, size, &description->c_scale);
    case CUBLASLT_MATMUL_DESC_D_SCALE_POINTER:
      return Take(buffer, size, &description->d_scale);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
      return Take(buffer, size, &description->fast_accumulation);
    default:
      return Refuse(CUBLAS_STATUS_NOT_SUPPORTED,
                    "the host's library does not have attribute " + std::to_string(attribute) + " of GEMMs");
  }
}

cublasStatus_t SetOf(Preference* preference, cublasLtMatmulPreferenceAttributes_t attribute,
                     const void* buffer, size_t size) {
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return Take(buffer, size, &preference->most_workspace);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return Take(buffer, size, &preference->reduction_schemes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return Take(buffer, size, &preference->alignment_a);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return Take(buffer, size, &preference->alignment_b);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return Take(buffer, size, &preference->alignment_c);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return Take(buffer, size, &preference->alignment_d);
    default:
      return Refuse(CUBLAS_STATUS_NOT_SUPPORTED, "the host's library does not have attribute " +
                                                     std::to_string(attribute) + " of preferences");
  }
}

/// Of a descriptor that may be null.
template <typename Descriptor, typename Opaque>
cublasStatus_t Destroy(Opaque* descriptor) {
  delete static_cast<Descriptor*>(descriptor);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

Counted::Counted() {
  ++TheState().live;
}
Counted::~Counted() {
  --TheState().live;
}

cublasStatus_t Refuse(cublasStatus_t status, const std::string& why) {
  ChangeRecord([&](Record* record) { record->refusal = why; });
  return status;
}
void ChangeRecord(const std::function<void(Record*)>& change) {
  const std::lock_guard<std::mutex> lock(TheState().mutex);
  change(&TheState().record);
}
Record Recorded() {
  const std::lock_guard<std::mutex> lock(TheState().mutex);
  return TheState().record;
}
void Forget() {
  ChangeRecord([](Record* record) { *record = {}; });
}
int64_t LiveDescriptors() {
  return TheState().live;
}
void SetDevice(int device) {
  TheState().device = device;
}

}  // namespace trainwright::fake_cublaslt

namespace fake = trainwright::fake_cublaslt;

extern "C" {

cudaError_t cudaGetDevice(int* device) {
  *device = fake::TheState().device;
  return cudaSuccess;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (handle == nullptr) return fake::Refuse(CUBLAS_STATUS_INVALID_VALUE, "no place for a handle");
  *handle = new cublasLtContext{fake::TheState().device};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t compute_type,
                                        cudaDataType_t scale_type) {
  auto* const made = new fake::MatmulDescription;
  made->compute_type = compute_type;
  made->scale_type = scale_type;
  *description = made;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  return fake::Destroy<fake::MatmulDescription>(description);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute, const void* buffer,
                                              size_t size) {
  return fake::SetOf(static_cast<fake::MatmulDescription*>(description), attribute, buffer, size);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  auto* const made = new fake::MatrixLayout;
  made->type = type;
  made->rows = rows;
  made->columns = columns;
  made->leading = leading;
  *layout = made;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return fake::Destroy<fake::MatrixLayout>(layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new fake::Preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return fake::Destroy<fake::Preference>(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* buffer, size_t size) {
  return fake::SetOf(static_cast<fake::Preference*>(preference), attribute, buffer, size);
}

}  // extern "C"
