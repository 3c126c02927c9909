/// A library of cuBLASLt's name and binary interface that computes on the host: the functions that
/// lib/nn/cuda/cublaslt_library.h looks up, so that the calls which lib/nn/cuda/cublaslt_product.cc encodes
/// are carried out where there is no GPU. Memory of the "device" is the host's, and a product is computed
/// inside the call, whatever the stream. Of the runtime it has cudaGetDevice.
///
/// How to use it: link a program with trainwright_fake_cublaslt, so that it is in the process before it is
/// looked for by name.
///
/// What it computes, and what it refuses with which status, follows the comments of cublasLt.h and the tables
/// of supported types in NVIDIA's documentation, not the code under test. It is stricter than the library
/// where that leaves a choice: descriptors are checked before anything is computed. It knows no batches, no
/// other order than columns, no complex or integer types, no ReLU, no fp8 results.
///
/// \source https://docs.nvidia.com/cuda/cublas/#cublasltmatmul
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace trainwright::fake_cublaslt {

/// In the order in which the heuristics name them, of those that the preferences leave.
enum class Algorithm {
  kInPlace,     ///< splits the depth, the sums meet in the output
  kAligned,     ///< whole sums; operands at multiples of 16 bytes
  kHungry,      ///< whole sums, with a workspace of 64 MiB
  kOutputType,  ///< splits the depth, the sums meet in the workspace rounded to the type of the output
  kSplit,       ///< splits the depth, the sums meet in the workspace in fp32
  kSimple,      ///< whole sums of operands anywhere
};

/// What the library was asked for since the last Forget.
struct Record {
  int64_t searches = 0;          ///< for algorithms
  int64_t refused_searches = 0;  ///< of those, the ones that found none
  /// That were computed, by epilogue: the names of cublasLt.h in lower case, after "fp8 " of fp8 operands.
  std::map<std::string, int64_t> products;
  std::string refusal;  ///< why the last call was refused that was; empty: none was
  // Of the last product.
  Algorithm algorithm = Algorithm::kSimple;
  const void *workspace = nullptr, *stream = nullptr;
  size_t workspace_size = 0;
};

// All are thread-safe.
Record Recorded();
void Forget();
/// Descriptors that were made and not destroyed.
int64_t LiveDescriptors();
/// The one that cudaGetDevice names from now on, in all threads.
void SetDevice(int device);

}  // namespace trainwright::fake_cublaslt
