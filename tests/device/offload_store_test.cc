#include "lib/device/offload_store.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "lib/base/error.h"
#include "lib/device/cuda_backend.h"
#include "tests/support/support.h"
#include "tests/support/tested_device.h"

namespace trainwright {
namespace {

class OffloadStoreTest : public testing::TestWithParam<at::DeviceType> {
 protected:
  void SetUp() override {
    if (device_.is_cuda() && ProcessCudaBackend().plugin == nullptr) {
      GTEST_SKIP() << "NOT RUN: " << ProcessCudaBackend().problem;
    }
  }
  const at::Device device_ = at::Device(GetParam());
  test::TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Devices, OffloadStoreTest, testing::Values(at::kCPU, test::kTestedDevice),
                         [](const auto& info) { return test::NameOfDevice(info.param); });

TEST_P(OffloadStoreTest, PartsComeBackInAnyOrderAndMayBeOverwritten) {
  const auto store = MakeOffloadStore(device_, folder_.path(), 4000);
  const at::Tensor numbers = at::arange(1000, at::kFloat).to(device_);
  const auto part = [&](int64_t begin, int64_t end) { return numbers.narrow(0, begin, end - begin); };
  store->Write(4 * 700, part(700, 1000), 0);
  store->Write(0, part(300, 1000), 0);  // of other contents, then the right ones
  store->Write(0, part(0, 300), 0);
  store->Write(4 * 300, part(300, 700), 0);
  at::Tensor whole = at::empty_like(numbers), middle = at::empty_like(part(250, 750));
  store->Read(4 * 250, middle, 0);
  store->Await(0);
  EXPECT_TRUE(at::equal(middle, part(250, 750)));
  store->Write(4 * 700, part(700, 1000), 0);
  store->Read(0, whole, 0);
  store->Await(0);
  EXPECT_TRUE(at::equal(whole, numbers));
  EXPECT_EQ(store->counts().in_bytes, 2000 + 4000);
}

TEST(OffloadStoreFolderTest, AFolderWithoutRoomIsToldOfBeforeAnythingIsWritten) {
  const test::TemporaryFolder folder;
  try {
    MakeOffloadStore(at::Device(at::kCPU), folder.path(), int64_t{1} << 60);
    ADD_FAILURE() << "took it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_EQ(error.object(), folder.path());
  }
}

}  // namespace
}  // namespace trainwright
