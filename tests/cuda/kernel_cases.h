/// The cases of every function with a storage type: each type, by the wide and by the narrow kernel.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/cuda/cuda_memory.h"

namespace trainwright::cuda {

class StorageTest : public testing::TestWithParam<std::tuple<Storage, Access>> {
 protected:
  void SetUp() override { cuda_emulation::ResetLaunchCounts(); }
  Storage storage() const { return std::get<0>(GetParam()); }
  Access access() const { return std::get<1>(GetParam()); }
  bool wide() const { return access() == Access::kWide; }
  /// \returns the size that the wide kernels take, or an odd one near it
  int64_t Width(int64_t width) const { return wide() ? width : width - 3; }
};

inline std::string CaseName(const testing::TestParamInfo<std::tuple<Storage, Access>>& info) {
  const Storage storage = std::get<0>(info.param);
  const std::string name = storage == Storage::kFp32 ? "fp32" : storage == Storage::kBf16 ? "bf16" : "fp16";
  return name + (std::get<1>(info.param) == Access::kWide ? "_wide" : "_narrow");
}

// With real threads two stand for all: which elements a thread takes depends on the width alone.
#if defined(__SANITIZE_THREAD__)
inline const auto kStorageCases = testing::Values(std::make_tuple(Storage::kFp32, Access::kWide),
                                                  std::make_tuple(Storage::kBf16, Access::kNarrow));
#else
inline const auto kStorageCases =
    testing::Combine(testing::Values(Storage::kFp32, Storage::kBf16, Storage::kFp16),
                     testing::Values(Access::kWide, Access::kNarrow));
#endif

#define TRAINWRIGHT_STORAGE_CASES(suite) INSTANTIATE_TEST_SUITE_P(Every, suite, kStorageCases, CaseName)

/// Appends the bytes of arrays, for SameInEveryOrder.
template <typename... Arrays>
std::vector<double> AllValues(const Arrays&... arrays) {
  std::vector<double> all;
  const auto append = [&](const auto& values) { all.insert(all.end(), values.begin(), values.end()); };
  (append(arrays.values()), ...);
  return all;
}

}  // namespace trainwright::cuda
