/// The algorithms that a library has named for GEMMs, kept so that it is asked once for each: an answer takes
/// longer to find than a small GEMM to launch. Torch-free, and free of the library.
///
/// An answer depends on what the key holds and on nothing else, so that a stored algorithm gives the bits of
/// one that was just asked for.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>

#include "lib/nn/cuda/epilogue_product.h"

namespace trainwright::cuda {

/// The largest power of two up to 256 that divides an address; of null 256.
inline uint32_t AlignmentOf(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  if (address == 0) return 256;
  return static_cast<uint32_t>(std::min<uintptr_t>(256, address & (~address + 1)));
}

/// All that a library's choice for a GEMM depends on: the device, shape, types, layout, alignment, epilogue,
/// and which of its candidates is asked for. Values and whether they are added to are not.
using AlgorithmKey = std::array<int64_t, 23>;

inline AlgorithmKey AlgorithmKeyOf(const EpilogueProduct& product, int device) {
  return {device,
          product.rows,
          product.columns,
          product.depth,
          static_cast<int64_t>(product.operand_type),
          static_cast<int64_t>(product.out_type),
          product.tf32,
          product.a.transposed,
          product.a.stride,
          AlignmentOf(product.a.data),
          product.b.transposed,
          product.b.stride,
          AlignmentOf(product.b.data),
          product.out_stride,
          AlignmentOf(product.out),
          static_cast<int64_t>(product.epilogue),
          product.bias != nullptr,
          AlignmentOf(product.bias),
          AlignmentOf(product.bias_gradient),
          AlignmentOf(product.pre_activation),
          product.candidate,
          product.fp8 ? static_cast<int64_t>(product.fp8->a) : -1,
          product.fp8 ? static_cast<int64_t>(product.fp8->b) : -1};
}

/// Holds the last `most` answers: micro-batches of packed samples have ever new numbers of rows. Thread-safe.
/// \tparam Algorithm copied
template <typename Algorithm>
class AlgorithmStore {
 public:
  static constexpr size_t kMostAnswers = 4096;

  explicit AlgorithmStore(size_t most = kMostAnswers) : most_(most) {}

  /// \param ask gives the answer where none is stored: an algorithm, or nullopt where there is none, which is
  ///     kept, too. Called by one thread at a time
  template <typename Ask>
  std::optional<Algorithm> Of(const AlgorithmKey& key, const Ask& ask) {
    const std::lock_guard lock(mutex_);
    const auto found = answers_.find(key);
    if (found != answers_.end()) return found->second;
    const std::optional<Algorithm> answer = ask();
    if (order_.size() == most_) {
      answers_.erase(order_.front());
      order_.pop_front();
    }
    answers_.emplace(key, answer);
    order_.push_back(key);
    return answer;
  }

 private:
  const size_t most_;
  std::mutex mutex_;
  std::map<AlgorithmKey, std::optional<Algorithm>> answers_;
  std::deque<AlgorithmKey> order_;  // in which they came
};

}  // namespace trainwright::cuda
