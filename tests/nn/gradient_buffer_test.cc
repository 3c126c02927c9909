// Gradients of which one segment is in memory at a time, beside a plain array.
#include "lib/nn/parameters/gradient_buffer.h"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using Segments = std::vector<GradientBuffer::Segment>;

class GradientBufferTest : public testing::Test {
 protected:
  GradientBufferTest() {
    buffer_.SetLayout(Segments{{0, 64}, {64, 80}, {80, 176}, {176, 192}},
                      at::TensorOptions().device(at::kCPU));
  }
  void Offload() {
    buffer_.Offload(MakeOffloadStore(at::Device(at::kCPU), folder_.path(), buffer_.size_bytes()));
  }
  std::vector<float> All() {
    std::vector<float> all;
    buffer_.ForEachPart([&](int64_t begin, const at::Tensor& part) {
      EXPECT_EQ(begin, static_cast<int64_t>(all.size()));
      const float* data = part.const_data_ptr<float>();
      all.insert(all.end(), data, data + part.numel());
    });
    return all;
  }

  const test::TemporaryFolder folder_;
  GradientBuffer buffer_;
};

TEST_F(GradientBufferTest, OffloadedTheMemoryIsThatOfTheLargestSegment) {
  EXPECT_EQ(buffer_.memory_bytes(), 192 * 4);
  Offload();
  EXPECT_EQ(buffer_.memory_bytes(), 96 * 4);
  EXPECT_EQ(buffer_.size_bytes(), 192 * 4);
}

TEST_F(GradientBufferTest, OffloadedGradientsAreThoseOfAPlainArrayAfterRandomUse) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  Offload();
  const Rng rng(test::TestSeed(), "use");
  std::vector<float> expected(192, 0.0f);
  const Segments segments = {{0, 64}, {64, 80}, {80, 176}, {176, 192}};
  uint64_t drawn = 0;
  const auto draw = [&](uint64_t below) { return rng.Bits(drawn++) % below; };
  for (int turn = 0; turn < 400; ++turn) {
    const GradientBuffer::Segment& segment = segments[draw(segments.size())];
    const auto size = static_cast<int64_t>(1 + draw(static_cast<uint64_t>(segment.end - segment.begin)));
    const int64_t begin =
        segment.begin +
        static_cast<int64_t>(draw(static_cast<uint64_t>(segment.end - segment.begin - size + 1)));
    const auto added = static_cast<float>(draw(100));
    buffer_.View(begin, size).add_(added);
    for (int64_t i = begin; i < begin + size; ++i) expected[static_cast<size_t>(i)] += added;
    if (turn % 37 == 36) {
      EXPECT_EQ(All(), expected) << turn;
    }
    if (turn % 97 == 96) {
      buffer_.Zero();
      expected.assign(192, 0.0f);
    }
  }
  EXPECT_EQ(All(), expected);
}

TEST_F(GradientBufferTest, WhatAVisitorChangesIsNotStoredWhenOffloaded) {
  Offload();
  buffer_.View(70, 4).fill_(3);
  const std::vector<float> before = All();
  buffer_.ForEachPart([](int64_t, at::Tensor& part) { part.fill_(9); });
  EXPECT_EQ(All(), before);
}

TEST_F(GradientBufferTest, GivenAwayASegmentIsZeroUntilItIsWrittenAndAfterItsRelease) {
  buffer_.GiveAway();
  EXPECT_FALSE(buffer_.allocated());
  at::Tensor out = at::ones({112}, at::kFloat);
  buffer_.CopyTo(60, out);
  EXPECT_TRUE(out.eq(0).all().item<bool>()) << "of segments that nobody asked for";
  buffer_.View(64, 16).fill_(3);
  buffer_.View(100, 4).fill_(4);
  buffer_.CopyTo(60, out);
  EXPECT_EQ(out.sum().item<float>(), 16 * 3 + 4 * 4);
  EXPECT_EQ(out[3].item<float>(), 0);
  EXPECT_EQ(out[4].item<float>(), 3);
  EXPECT_EQ(out[40].item<float>(), 4);
  buffer_.Release(1);
  buffer_.CopyTo(60, out);
  EXPECT_EQ(out.sum().item<float>(), 4 * 4);
  EXPECT_EQ(buffer_.View(64, 16).sum().item<float>(), 0);
}

TEST_F(GradientBufferTest, GivenAwayMemoryThatWasReleasedServesTheNextSegment) {
  buffer_.GiveAway();
  EXPECT_EQ(buffer_.memory_bytes(), 96 * 4) << "before the first use: of the largest";
  buffer_.View(80, 96).fill_(1);
  buffer_.Release(2);
  EXPECT_EQ(buffer_.View(0, 64).sum().item<float>(), 0);
  buffer_.Release(0);
  EXPECT_EQ(buffer_.View(64, 16).sum().item<float>(), 0);
  EXPECT_EQ(buffer_.memory_bytes(), 96 * 4);
  buffer_.View(0, 64);
  EXPECT_EQ(buffer_.memory_bytes(), (96 + 64) * 4) << "two at a time";
}

}  // namespace
}  // namespace trainwright
