// The device itself: that it refuses the host, and that its counts count.
#include "tests/support/refusing_device/refusing_device.h"

#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <c10/core/StreamGuard.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "lib/device/copy_lanes.h"
#include "lib/device/device_sync.h"
#include "lib/device/upload.h"

namespace trainwright {
namespace {

using test::CountsOfDevice;
using test::kRefusingDevice;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

at::Tensor Numbers(int64_t size) {
  return at::arange(size, at::kFloat);
}
at::Tensor OnDevice(const at::Tensor& tensor) {
  return tensor.to(kRefusingDevice);
}
at::Tensor Pinned(int64_t size) {
  return at::empty({size}, at::TensorOptions().dtype(at::kFloat).pinned_memory(true));
}

class RefusingDeviceTest : public testing::Test {
 protected:
  RefusingDeviceTest() { test::ResetDeviceCounts(); }
};
using RefusingDeviceDeathTest = RefusingDeviceTest;

TEST_F(RefusingDeviceDeathTest, AHostThatReadsATensorDiesWithItsName) {
  const at::Tensor tensor = OnDevice(Numbers(10));
  const auto* data = tensor.const_data_ptr<float>();
  EXPECT_DEATH(std::printf("%f", data[3]),
               "the host touched device memory: byte 12 of allocation .* 40 bytes");
}

TEST_F(RefusingDeviceDeathTest, AHostThatWritesATensorDies) {
  at::Tensor tensor = OnDevice(Numbers(10));
  EXPECT_DEATH(tensor.mutable_data_ptr<float>()[0] = 1,
               "the host touched device memory: byte 0 of allocation");
}

TEST_F(RefusingDeviceDeathTest, AKernelOfTheHostThatIsGivenATensorDies) {
  const at::Tensor tensor = OnDevice(Numbers(10));
  const at::Tensor wrong = at::from_blob(tensor.data_ptr(), {10}, at::kFloat);
  EXPECT_DEATH(wrong.add(1), "the host touched device memory");
}

TEST_F(RefusingDeviceTest, OperatorsComputeWhatTheCpuDoes) {
  const at::Tensor host = Numbers(12).view({3, 4});
  const at::Tensor device = OnDevice(host);
  EXPECT_EQ(device.device(), kRefusingDevice);
  EXPECT_TRUE(device.add(device).mul(2).sub_(1).cpu().equal(host.mul(4).sub(1)));
  EXPECT_TRUE(at::mm(device, device.t()).cpu().equal(at::mm(host, host.t())));
  EXPECT_TRUE(at::cat({device, device.narrow(0, 1, 2)}).cpu().equal(at::cat({host, host.narrow(0, 1, 2)})));
  at::Tensor out = at::empty({0}, device.options());
  at::add_out(out, device, device);
  EXPECT_TRUE(out.cpu().equal(host.add(host)));
  at::Tensor changed = device.clone();
  changed.select(1, 2).fill_(7);
  at::Tensor expected = host.clone();
  expected.select(1, 2).fill_(7);
  EXPECT_TRUE(changed.t().contiguous().cpu().equal(expected.t().contiguous()));
  EXPECT_TRUE(std::get<0>(device.sum(0).sort()).cpu().equal(std::get<0>(host.sum(0).sort())));
}

TEST_F(RefusingDeviceTest, FreshMemoryIsFullOfNan) {
  EXPECT_TRUE(std::isnan(at::empty({100}, at::TensorOptions().device(kRefusingDevice)).sum().item<float>()));
}

TEST_F(RefusingDeviceTest, AnOperatorRefusesATensorOfTheHost) {
  const at::Tensor device = OnDevice(Numbers(4));
  EXPECT_ANY_THROW(device.index_copy(0, Numbers(4).to(at::kLong), device));
}

TEST_F(RefusingDeviceTest, WaitsAreCountedByTheirCause) {
  const at::Tensor device = OnDevice(Numbers(4));
  test::ResetDeviceCounts();
  device.cpu();
  device[2].item<float>();
  WaitFor(kRefusingDevice);
  device.nonzero();
  device.copy_(Numbers(4));
  device.copy_(Numbers(4), /*non_blocking=*/true);
  EXPECT_THAT(CountsOfDevice().waits, ElementsAre(Pair("a copy to the device", 1),
                                                  Pair("a copy to the device of what is not pinned", 1),
                                                  Pair("a copy to the host", 1), Pair("a stream", 1),
                                                  Pair("aten::nonzero", 1), Pair("item", 1)));
}

TEST_F(RefusingDeviceTest, KernelsAndCopiesByPinnedMemoryAreNoWaits) {
  const at::Tensor device = Upload(Numbers(4), kRefusingDevice);
  const at::Tensor back = Pinned(4);
  back.copy_(device.add(1), /*non_blocking=*/true);
  EXPECT_THAT(CountsOfDevice().waits, IsEmpty());
  EXPECT_EQ(CountsOfDevice().copies, 2);
  EXPECT_EQ(CountsOfDevice().kernels, 1);
}

TEST_F(RefusingDeviceTest, ACopyToTheHostArrivesOnceItWasWaitedFor) {
  const at::Tensor device = OnDevice(Numbers(4));
  const at::Tensor back = Pinned(4);
  back.copy_(device, /*non_blocking=*/true);
  EXPECT_FALSE(back.equal(Numbers(4)));
  const at::Tensor again = at::empty({4}, device.options());
  again.copy_(back, /*non_blocking=*/true);  // in the order of the stream
  EXPECT_TRUE(again.cpu().equal(Numbers(4)));
  EXPECT_TRUE(back.equal(Numbers(4)));
}

TEST_F(RefusingDeviceTest, PinnedMemoryThatChangesUnderACopyIsAViolation) {
  const at::Tensor device = at::empty({4}, at::TensorOptions().device(kRefusingDevice));
  const at::Tensor from = Pinned(4);
  from.fill_(1);
  device.copy_(from, /*non_blocking=*/true);
  WaitFor(kRefusingDevice);
  from.fill_(2);
  device.copy_(from, /*non_blocking=*/true);
  EXPECT_THAT(CountsOfDevice().violations, IsEmpty());
  from.fill_(3);
  WaitFor(kRefusingDevice);
  EXPECT_EQ(CountsOfDevice().violations.size(), 1u);
}

class SideStreamTest : public RefusingDeviceTest {
 protected:
  /// Queues a copy of a tensor of the device to pinned memory beside what the device computes.
  static void Queue(CopyLanes& lanes, const at::Tensor& from, const at::Tensor& to) {
    lanes.Queue(0, {from}, [&] { to.copy_(from, /*non_blocking=*/true); });
  }
  at::Tensor device_ = OnDevice(Numbers(5)), pinned_ = Pinned(5);
};

TEST_F(SideStreamTest, ACopyThatIsAwaitedHasWhatWasThereWhenItWasQueued) {
  CopyLanes lanes(kRefusingDevice, 1);
  Queue(lanes, device_, pinned_);
  lanes.Await(0);
  device_.zero_();
  WaitFor(kRefusingDevice);
  EXPECT_TRUE(pinned_.equal(Numbers(5)));
  EXPECT_THAT(CountsOfDevice().violations, IsEmpty());
}

TEST_F(SideStreamTest, ACopyThatIsNotAwaitedIsDoneAsLateAsItMay) {
  CopyLanes lanes(kRefusingDevice, 1);
  Queue(lanes, device_, pinned_);
  device_.zero_();
  WaitFor(kRefusingDevice);
  EXPECT_TRUE(pinned_.equal(Numbers(5).zero_()));
}

TEST_F(SideStreamTest, ACopyThatDoesNotWaitForTheKernelsBeforeItIsAViolation) {
  device_.zero_();
  {
    const c10::StreamGuard guard(UploadStream(kRefusingDevice));
    pinned_.copy_(device_, /*non_blocking=*/true);
  }
  WaitFor(kRefusingDevice);
  EXPECT_EQ(CountsOfDevice().violations.size(), 1u);
}

TEST_F(SideStreamTest, MemoryThatGoesWhileItIsCopiedUnrecordedIsAViolation) {
  {
    const at::Tensor passing = OnDevice(Numbers(5));
    CopyLanes lanes(kRefusingDevice, 1);
    lanes.Queue(0, {}, [&] { pinned_.copy_(passing, /*non_blocking=*/true); });
  }
  EXPECT_EQ(CountsOfDevice().violations.size(), 1u);
  WaitFor(kRefusingDevice);
}

TEST_F(SideStreamTest, AnUploadDoesNotWaitForTheKernelsBeforeItAndIsThereForThoseAfterIt) {
  device_.mul_(2);
  const at::Tensor uploaded = Upload(Numbers(5), kRefusingDevice);
  device_.add_(uploaded);
  EXPECT_TRUE(device_.cpu().equal(Numbers(5).mul(3)));
  EXPECT_THAT(CountsOfDevice().violations, IsEmpty());
  EXPECT_EQ(CountsOfDevice().copies, 1);
}

TEST_F(RefusingDeviceTest, WaitsCanBeRefused) {
  const at::Tensor device = OnDevice(Numbers(4));
  const test::WaitsRefused refused;
  EXPECT_NO_THROW(device.add(1));
  EXPECT_ANY_THROW(device.cpu());
  EXPECT_ANY_THROW(WaitFor(kRefusingDevice));
}

TEST_F(RefusingDeviceTest, BytesOfTensorsAreCounted) {
  const int64_t before = CountsOfDevice().bytes;
  {
    const at::Tensor device = at::empty({1000}, at::TensorOptions().device(kRefusingDevice));
    EXPECT_EQ(CountsOfDevice().bytes, before + 4000);
  }
  EXPECT_EQ(CountsOfDevice().bytes, before);
  EXPECT_EQ(CountsOfDevice().peak_bytes, before + 4000);
}

}  // namespace
}  // namespace trainwright
