/// Memory of emulated kernels: allocations that end where the data ends, so that AddressSanitizer sees what
/// runs over it, aligned as the wide accesses want it or by one element off.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "lib/base/rng.h"
#include "lib/nn/cuda/kernels.h"
#include "tests/support/cuda_emulation/cuda_emulation.h"
#include "tests/support/support.h"

namespace trainwright::cuda {

/// Which of their two kernels the functions take.
enum class Access { kWide, kNarrow };

template <typename T>
class Memory {
 public:
  Memory(int64_t size, Access access)
      : size_(size),
        offset_(access == Access::kWide ? 0 : sizeof(T)),
        bytes_(new std::byte[offset_ + static_cast<size_t>(size) * sizeof(T)]) {
    std::memset(bytes_.get(), 0xFF, offset_ + static_cast<size_t>(size) * sizeof(T));
  }
  Memory(const std::vector<T>& values, Access access) : Memory(static_cast<int64_t>(values.size()), access) {
    if (!values.empty()) std::memcpy(data(), values.data(), values.size() * sizeof(T));
  }
  T* data() { return reinterpret_cast<T*>(bytes_.get() + offset_); }
  const T* data() const { return reinterpret_cast<const T*>(bytes_.get() + offset_); }
  int64_t size() const { return size_; }
  T& operator[](int64_t i) { return data()[i]; }
  const T& operator[](int64_t i) const { return data()[i]; }
  std::vector<T> values() const { return {data(), data() + size_}; }

 private:
  int64_t size_;
  size_t offset_;
  std::unique_ptr<std::byte[]> bytes_;
};

/// Elements of a storage type, read and written as numbers.
class StoredMemory {
 public:
  StoredMemory(Storage storage, int64_t size, Access access)
      : storage_(storage),
        short_(storage == Storage::kFp32 ? 0 : size, access),
        long_(storage == Storage::kFp32 ? size : 0, access) {}
  StoredMemory(Storage storage, const std::vector<double>& values, Access access)
      : StoredMemory(storage, static_cast<int64_t>(values.size()), access) {
    for (size_t i = 0; i < values.size(); ++i) Set(static_cast<int64_t>(i), values[i]);
  }
  void* data() { return storage_ == Storage::kFp32 ? static_cast<void*>(long_.data()) : short_.data(); }
  const void* data() const { return const_cast<StoredMemory*>(this)->data(); }
  int64_t size() const { return storage_ == Storage::kFp32 ? long_.size() : short_.size(); }
  double operator[](int64_t i) const {
    if (storage_ == Storage::kFp32) return long_[i];
    return storage_ == Storage::kBf16 ? __bfloat162float({short_[i]}) : __half2float({short_[i]});
  }
  void Set(int64_t i, double value) {
    const auto number = static_cast<float>(value);
    if (storage_ == Storage::kFp32) {
      long_[i] = number;
    } else {
      short_[i] =
          storage_ == Storage::kBf16 ? __float2bfloat16_rn(number).bits : __float2half_rn(number).bits;
    }
  }
  std::vector<double> values() const {
    std::vector<double> values;
    for (int64_t i = 0; i < size(); ++i) values.push_back((*this)[i]);
    return values;
  }

 private:
  Storage storage_;
  Memory<uint16_t> short_;
  Memory<float> long_;
};

/// What a number becomes when it is stored.
inline double Rounded(Storage storage, float value) {
  StoredMemory memory(storage, int64_t{1}, Access::kWide);
  memory.Set(0, value);
  return memory[0];
}

/// Normal numbers, a function of the test seed and `stream`.
inline std::vector<double> Normals(int64_t count, uint64_t stream) {
  const Rng rng(test::TestSeed(), "cuda kernels", stream);
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(rng.Normal(static_cast<uint64_t>(i))));
  }
  return values;
}
inline Memory<float> Floats(const std::vector<double>& values, Access access) {
  return {std::vector<float>(values.begin(), values.end()), access};
}

/// What rounding to the storage type may change, of a number as large as 1.
inline double Spacing(Storage storage) {
  return storage == Storage::kFp32 ? 0x1p-24 : storage == Storage::kBf16 ? 0x1p-8 : 0x1p-11;
}
/// \param scale of the terms that were added up in fp32
inline void ExpectClose(double actual, double exact, Storage storage, double scale, const std::string& what) {
  const double allowed =
      Spacing(storage) * std::fabs(exact) + 2e-6 * scale + (storage == Storage::kFp16 ? 0x1p-24 : 0);
  EXPECT_LE(std::fabs(actual - exact), allowed) << what << ": " << actual << " instead of " << exact;
}

/// How often SameInEveryOrder runs what it is given: with real threads once, they look for races alone.
#if defined(__SANITIZE_THREAD__)
inline constexpr int64_t kRuns = 1;
#else
inline constexpr int64_t kRuns = 3;
#endif

/// Runs what launches kernels with the blocks in order, then in random orders. Each run returns all that the
/// kernels wrote, which must be the same bits.
template <typename Run>
auto SameInEveryOrder(const Run& run) {
  const auto in_order = run();
  for (uint64_t run_number = 1; run_number < static_cast<uint64_t>(kRuns); ++run_number) {
    const uint64_t seed = test::TestSeed() + run_number;
    SCOPED_TRACE("blocks in the order of seed " + std::to_string(seed));
    cuda_emulation::SetOptions({.block_order_seed = seed});
    const auto shuffled = run();
    cuda_emulation::SetOptions({});
    EXPECT_EQ(std::memcmp(in_order.data(), shuffled.data(), in_order.size() * sizeof(in_order[0])), 0);
  }
  return in_order;
}

}  // namespace trainwright::cuda
