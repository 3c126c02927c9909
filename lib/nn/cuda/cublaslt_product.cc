// The seam of epilogue_product.h by cuBLASLt. The library's matrices have contiguous columns: our rows. So it
// is asked for the transpose, out^T = b^T a^T, with b as its first operand. Where there is no GPU, tests
// carry its calls out by the library of tests/support/fake_cublaslt.
#include <optional>
#include <utility>
#include <vector>

#include "lib/nn/cuda/algorithm_store.h"
#include "lib/nn/cuda/cublaslt_library.h"
#include "lib/nn/cuda/epilogue_product.h"
#include "lib/nn/product_workspace.h"

namespace trainwright::cuda {
namespace {

cudaDataType_t DataType(Storage storage) {
  switch (storage) {
    case Storage::kBf16:
      return CUDA_R_16BF;
    case Storage::kFp16:
      return CUDA_R_16F;
    case Storage::kFp32:
      break;
  }
  return CUDA_R_32F;
}

cudaDataType_t DataType(Fp8Format format) {
  return format == Fp8Format::kE4m3 ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2;
}

cublasLtEpilogue_t EpilogueOf(const EpilogueProduct& product) {
  switch (product.epilogue) {
    case Epilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::kGelu:
      return product.bias != nullptr ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::kGeluGradient:
      return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::kBiasGradient:
      return CUBLASLT_EPILOGUE_BGRADB;  // of its second operand, our a
    case Epilogue::kNone:
      break;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

/// What describes a product to the library; `valid` once all of it could be made.
class Description {
 public:
  Description(const CublasLtFunctions& library, const EpilogueProduct& product) : library_(library) {
    const cudaDataType_t of_out = DataType(product.out_type),
                         of_a = product.fp8 ? DataType(product.fp8->a) : DataType(product.operand_type),
                         of_b = product.fp8 ? DataType(product.fp8->b) : DataType(product.operand_type);
    const bool tf32 = product.tf32 && !product.fp8 && product.operand_type == Storage::kFp32;
    ok_ = Succeeds(library.create_product(&product_, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                                          CUDA_R_32F)) &&
          MakeLayout(of_b, product.columns, product.depth, product.b, &a_) &&
          MakeLayout(of_a, product.depth, product.rows, product.a, &b_) &&
          MakeLayout(of_out, product.columns, product.rows, {nullptr, product.out_stride, false}, &out_) &&
          Succeeds(library.create_preference(&preference_)) && SetProduct(product, of_out) &&
          SetPreference(product);
  }
  ~Description() {
    if (preference_ != nullptr) library_.destroy_preference(preference_);
    for (const cublasLtMatrixLayout_t layout : {a_, b_, out_}) {
      if (layout != nullptr) library_.destroy_layout(layout);
    }
    if (product_ != nullptr) library_.destroy_product(product_);
  }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;

  bool valid() const { return ok_; }
  /// The library's choice of that number; nullopt where it has none.
  std::optional<cublasLtMatmulAlgo_t> AlgorithmOf(cublasLtHandle_t handle, int candidate) const {
    std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(candidate) + 1);
    int found = 0;
    if (!Succeeds(library_.heuristics(handle, product_, a_, b_, out_, out_, preference_, candidate + 1,
                                      results.data(), &found)) ||
        found <= candidate || results.back().state != CUBLAS_STATUS_SUCCESS) {
      return std::nullopt;
    }
    return results.back().algo;
  }
  cublasStatus_t Multiply(cublasLtHandle_t handle, const EpilogueProduct& product,
                          const cublasLtMatmulAlgo_t& algorithm, void* workspace, cudaStream_t stream) const {
    const float alpha = 1, beta = product.accumulate ? 1 : 0;
    return library_.multiply(handle, product_, &alpha, product.b.data, a_, product.a.data, b_, &beta,
                             product.out, out_, product.out, out_, &algorithm, workspace,
                             static_cast<size_t>(kProductWorkspaceBytes), stream);
  }

 private:
  static bool Succeeds(cublasStatus_t status) { return status == CUBLAS_STATUS_SUCCESS; }
  /// \param rows, columns of the matrix as the library names them; transposed, it holds it the other way
  bool MakeLayout(cudaDataType_t type, int64_t rows, int64_t columns, const ProductOperand& operand,
                  cublasLtMatrixLayout_t* layout) {
    if (operand.transposed) std::swap(rows, columns);
    return Succeeds(library_.create_layout(layout, type, static_cast<uint64_t>(rows),
                                           static_cast<uint64_t>(columns), operand.stride));
  }
  template <typename Value>
  bool Set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    return Succeeds(library_.set_of_product(product_, attribute, &value, sizeof(value)));
  }
  template <typename Value>
  bool Prefer(cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
    return Succeeds(library_.set_of_preference(preference_, attribute, &value, sizeof(value)));
  }
  bool SetProduct(const EpilogueProduct& product, cudaDataType_t of_out) {
    const cublasOperation_t of_a = product.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                            of_b = product.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const void* bias = product.epilogue == Epilogue::kBiasGradient ? product.bias_gradient : product.bias;
    return Set(CUBLASLT_MATMUL_DESC_TRANSA, of_a) && Set(CUBLASLT_MATMUL_DESC_TRANSB, of_b) &&
           Set(CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(product)) && SetScales(product) &&
           (bias == nullptr || (Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias) &&
                                Set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, of_out))) &&
           (product.pre_activation == nullptr ||
            (Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, product.pre_activation) &&
             Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, product.out_stride)));
  }
  bool SetScales(const EpilogueProduct& product) {
    if (!product.fp8) return true;
    const int8_t fast_accumulation = 0;
    return Set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, product.fp8->b_scale) &&
           Set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, product.fp8->a_scale) &&
           Set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, fast_accumulation);
  }
  /// Sums split over the depth meet in fp32 in the workspace: those that meet in the output do so in the
  /// order in which blocks end.
  bool SetPreference(const EpilogueProduct& product) {
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const uint32_t of_out = AlignmentOf(product.out);
    return Prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(kProductWorkspaceBytes)) &&
           Prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes) &&
           Prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, AlignmentOf(product.b.data)) &&
           Prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, AlignmentOf(product.a.data)) &&
           Prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, of_out) &&
           Prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, of_out);
  }

  const CublasLtFunctions& library_;
  bool ok_ = false;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, out_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
};

}  // namespace

int64_t EpilogueWorkspaceBytes() {
  return kProductWorkspaceBytes;
}

ProductStatus MultiplyWithEpilogue(const EpilogueProduct& product, void* workspace, cudaStream_t stream) {
  // As the library it lives as long as the process.
  static auto* const algorithms = new AlgorithmStore<cublasLtMatmulAlgo_t>;
  int device = 0;
  const CublasLtFunctions* const library = CublasLt();
  if (library == nullptr || cudaGetDevice(&device) != cudaSuccess) return ProductStatus::kUnsupported;
  const cublasLtHandle_t handle = CublasLtHandle(*library);
  const Description description(*library, product);
  if (handle == nullptr || !description.valid()) return ProductStatus::kUnsupported;
  const std::optional<cublasLtMatmulAlgo_t> algorithm = algorithms->Of(
      AlgorithmKeyOf(product, device), [&] { return description.AlgorithmOf(handle, product.candidate); });
  if (!algorithm) return ProductStatus::kUnsupported;
  const cublasStatus_t status = description.Multiply(handle, product, *algorithm, workspace, stream);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) {
    return ProductStatus::kUnsupported;
  }
  return status == CUBLAS_STATUS_SUCCESS ? ProductStatus::kDone : ProductStatus::kFailed;
}

}  // namespace trainwright::cuda
