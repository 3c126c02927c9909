// Pinned memory in pieces, what torch locks for it, and what of it is offloaded to and copied to.
#include "lib/device/pinned_memory.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "lib/device/offload_stack.h"
#include "lib/device/offload_store.h"
#include "lib/train/snapshot_buffers.h"
#include "tests/support/refusing_device/refusing_device.h"

namespace trainwright {
namespace {

using test::kRefusingDevice;

TEST(PinnedBlockBytesTest, AreTheNextPowerOfTwo) {
  for (const auto& [size_bytes, locked_bytes] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 0}, {1, 1}, {4096, 4096}, {4097, 8192}, {(int64_t{1} << 40) + 1, int64_t{1} << 41}}) {
    EXPECT_EQ(PinnedBlockBytes(size_bytes), locked_bytes);
    EXPECT_EQ(HostCopyBytes(size_bytes, kRefusingDevice), locked_bytes);
    EXPECT_EQ(HostCopyBytes(size_bytes, at::Device(at::kCPU)), size_bytes);
  }
}

TEST(PinnedPiecesTest, TensorsThatLieInSeveralPiecesComeBack) {
  PinnedPieces pieces(/*piece_bytes=*/64);
  pieces.Reserve(500);
  EXPECT_EQ(pieces.locked_bytes(), 512);
  const at::Tensor floats = at::arange(100, at::kFloat).to(kRefusingDevice).view({4, 25}),
                   shorts = at::arange(5, at::kFloat).to(at::kBFloat16).to(kRefusingDevice);
  const auto out = [](const at::Tensor& pinned, const at::Tensor& part) {
    pinned.copy_(part, /*non_blocking=*/true);
  };
  pieces.ForEachPart(40, floats, out);  // to byte 440
  pieces.ForEachPart(442, shorts, out);
  std::vector<int64_t> sizes;
  const at::Tensor floats_back = at::empty_like(floats), shorts_back = at::empty_like(shorts);
  const auto in = [&](const at::Tensor& pinned, const at::Tensor& part) {
    sizes.push_back(part.numel());
    part.copy_(pinned, /*non_blocking=*/true);
  };
  pieces.ForEachPart(40, floats_back, in);
  EXPECT_THAT(sizes, testing::ElementsAre(6, 16, 16, 16, 16, 16, 14));
  pieces.ForEachPart(442, shorts_back, in);
  EXPECT_TRUE(at::equal(floats_back, floats));
  EXPECT_TRUE(at::equal(shorts_back, shorts));
}

TEST(PinnedPiecesTest, GrowWithoutMovingWhatIsThere) {
  PinnedPieces pieces(/*piece_bytes=*/64);
  const at::Tensor values = at::arange(16, at::kFloat).to(kRefusingDevice), back = at::empty_like(values);
  pieces.Reserve(64);
  pieces.ForEachPart(0, values, [](const at::Tensor& pinned, const at::Tensor& part) {
    pinned.copy_(part, /*non_blocking=*/true);
  });
  pieces.Reserve(6400);
  pieces.ForEachPart(0, back, [](const at::Tensor& pinned, const at::Tensor& part) {
    part.copy_(pinned, /*non_blocking=*/true);
  });
  EXPECT_TRUE(at::equal(back, values));
}

TEST(OffloadedBytesTest, OfAStoreAreLessThanAPieceAboveItsSize) {
  constexpr int64_t kSizeBytes = 130 << 20;  // torch would lock 256 MiB for one block
  EXPECT_EQ(MakeOffloadStore(kRefusingDevice, "", kSizeBytes)->host_bytes(), 192 << 20);
  EXPECT_EQ(OffloadStoreOnPaper(kRefusingDevice, kSizeBytes)->host_bytes(), 192 << 20);
  EXPECT_EQ(OffloadStoreOnPaper(at::Device(at::kCPU), kSizeBytes)->host_bytes(), 0);
}

TEST(OffloadedBytesTest, OfAStackAreThoseOfItsTensorsWithoutGapsBetweenThem) {
  const at::Tensor tensor = at::arange(10 << 20, at::kFloat).to(kRefusingDevice),
                   back = at::empty_like(tensor);
  const auto stack = MakeOffloadStack(kRefusingDevice, ""), paper = OffloadStackOnPaper(kRefusingDevice);
  for (int turn = 0; turn < 2; ++turn) {  // the second takes no more
    for (int i = 0; i < 3; ++i) {         // 120 MiB, for which torch would lock 192 as blocks of their own
      stack->Push({tensor}, 0);
      paper->Push({tensor}, 0);
    }
    for (int i = 0; i < 3; ++i) {
      stack->Pop({back}, 0);
      paper->Pop({back}, 0);
      stack->Await(0);
      EXPECT_TRUE(at::equal(back, tensor)) << turn << " " << i;
    }
    EXPECT_EQ(stack->host_bytes(), 128 << 20);
    EXPECT_EQ(paper->host_bytes(), 128 << 20);
  }
}

TEST(DeviceSnapshotTest, CountsTheBlocksThatTorchLocks) {
  SnapshotBuffers buffers;
  buffers.Allocate(0, at::ones({5}).to(kRefusingDevice));
  buffers.Allocate(1, at::ones({1025}).to(kRefusingDevice));
  EXPECT_EQ(buffers.size_bytes(), 32 + 8192);
  SnapshotBuffers of_cpu;
  of_cpu.Allocate(0, at::ones({1025}));
  EXPECT_EQ(of_cpu.size_bytes(), 4100);
}

}  // namespace
}  // namespace trainwright
