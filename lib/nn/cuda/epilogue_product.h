/// GEMMs with what is done to their results before they are stored: the one seam of the CUDA
/// backend towards cuBLASLt. The plugin implements it with that library (cublaslt_product.cc), tests on the
/// host with loops (tests/support/cuda_emulation/host_product.cc). Torch-free.
///
/// Numerics: operands are multiplied exactly and summed in fp32 (fp32 operands: with `tf32` their products
/// are of values rounded to 10 bits of the significand). The epilogue works on the fp32 sum, and each result
/// is rounded to its type once: with kGelu the activation is that of the sum with its bias in fp32,
/// not of the rounded pre-activation that is stored beside it. Sums that are split over the depth are
/// combined in fp32 in an order that the algorithm fixes, so one algorithm gives the same bits on every run
/// of one GPU. Of fp8 operands the sum is multiplied by both scales before it is rounded or added; cuBLASLt's
/// fast accumulation, which keeps fewer bits of sums, is off.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>

#include "lib/nn/cuda/kernels.h"
#include "lib/nn/linear/fp8_format.h"

namespace trainwright::cuda {

enum class Epilogue {
  kNone,
  kBias,          ///< out = GEMM + bias
  kGelu,          ///< pre_activation = GEMM (+ bias), out = GeluKind::kTanh of it
  kGeluGradient,  ///< out = GEMM times the derivative of that GELU at pre_activation, which is read
  kBiasGradient,  ///< out = GEMM, and bias_gradient = the sums of a's rows over the depth
};

/// A matrix in device memory whose rows, or with `transposed` whose columns, are contiguous.
struct ProductOperand {
  const void* data = nullptr;
  int64_t stride = 0;  ///< elements from one contiguous line to the next
  bool transposed = false;
};

/// Operands whose elements are bytes. A library multiplies them only along contiguous lines: a not
/// transposed, b transposed, with depth and columns multiples of 16.
struct Fp8Operands {
  Fp8Format a = Fp8Format::kE4m3, b = Fp8Format::kE4m3;
  const float *a_scale = nullptr, *b_scale = nullptr;  ///< in device memory
};

/// out = a b, or out += a b.
struct EpilogueProduct {
  int64_t rows = 0, columns = 0, depth = 0;  ///< a [rows, depth], b [depth, columns]
  Storage operand_type = Storage::kFp32, out_type = Storage::kFp32;
  ProductOperand a, b;
  void* out = nullptr;
  int64_t out_stride = 0;
  bool accumulate = false;  ///< with kNone and kBiasGradient alone
  Epilogue epilogue = Epilogue::kNone;
  const void* bias = nullptr;      ///< [columns], of the type of out; with kBias, and or not with kGelu
  float* bias_gradient = nullptr;  ///< [rows], with an fp32 out alone; overwritten
  void* pre_activation = nullptr;  ///< [rows, columns], of the type and stride of out
  int candidate = 0;               ///< which of the kernels that the library has for it, its best guess first
  bool tf32 = false;
  std::optional<Fp8Operands> fp8 = {};  ///< then operand_type says nothing
};

enum class ProductStatus {
  kDone,
  kUnsupported,  ///< nothing was written: the library is not there or has no such kernel for it
  kFailed,
};

/// Scratch that MultiplyWithEpilogue may use, in bytes: of the device, aligned to 256.
int64_t EpilogueWorkspaceBytes();

/// Launches it on the stream, of the current device. Thread-safe.
ProductStatus MultiplyWithEpilogue(const EpilogueProduct& product, void* workspace, cudaStream_t stream);

}  // namespace trainwright::cuda
