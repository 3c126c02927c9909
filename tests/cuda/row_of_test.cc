// Which row an element lies in, on both sides of what 32 bits hold.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "lib/nn/cuda/device_code.cuh"

namespace trainwright::cuda {
namespace {

TEST(DeviceCodeTest, TheRowOfAnElementIsThatItWasMadeOfAlsoBeyond32Bits) {
  constexpr int64_t kBorder = int64_t{1} << 32;
  for (const int64_t width : {int64_t{1}, int64_t{3}, int64_t{768}, kBorder - 1, kBorder, kBorder + 5}) {
    const int64_t near_border = kBorder / width;
    for (const int64_t row : {int64_t{0}, int64_t{1}, near_border - 1, near_border, near_border + 1}) {
      if (row < 0) continue;
      for (const int64_t column : {int64_t{0}, width / 2, width - 1}) {
        EXPECT_EQ(RowOf(row * width + column, width), row) << width << " " << column;
      }
    }
  }
}

}  // namespace
}  // namespace trainwright::cuda
