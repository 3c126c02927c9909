#include "lib/device/upload.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

namespace trainwright {
namespace {

TEST(UploadIds, NarrowAndWidenedAgainTheyAreTheSameInAsFewBytesAsTheBoundAllows) {
  const struct {
    int64_t bound, bytes;
  } cases[] = {{1, 2},
               {50257, 2},
               {65536, 2},
               {65537, 4},
               {151936, 4},
               {int64_t{1} << 31, 4},
               {(int64_t{1} << 31) + 1, 8}};
  for (const auto& [bound, bytes] : cases) {
    at::Tensor ids = at::randint(bound, {1000}, at::TensorOptions().dtype(at::kLong));
    ids[0] = 0;
    ids[1] = bound - 1;
    const at::Tensor narrow = NarrowIds(ids, bound), wide = WidenIds(narrow);
    EXPECT_EQ(narrow.element_size(), bytes) << bound;
    EXPECT_EQ(wide.scalar_type(), at::kLong);
    EXPECT_TRUE(at::equal(wide, ids)) << bound;
  }
}

TEST(UploadIds, OnTheCpuTheyAreTheTensorItself) {
  const at::Tensor ids = at::randint(9, {5}, at::TensorOptions().dtype(at::kLong));
  EXPECT_TRUE(UploadIds(ids, 9, at::Device(at::kCPU)).is_same(ids));
}

}  // namespace
}  // namespace trainwright
