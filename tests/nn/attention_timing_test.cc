#include "lib/nn/attention/attention_timing.h"

#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/nn/attention/attention_backend.h"

namespace trainwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const at::Device kGpu(at::kMeta);  // stands for one of today
const Numerics kBf16{Precision::kBf16, at::kBFloat16};

AttentionShape ShapeOf(int64_t head_dim, int64_t window = 0) {
  return {256, 4, 2, head_dim, window};
}

TEST(AttentionCandidatesTest, AreTheBackendsThatTakeTheHeads) {
  EXPECT_THAT(AttentionCandidates(kBf16, ShapeOf(64), 128, kGpu),
              ElementsAre(AttentionBackend::kCudnn, AttentionBackend::kFlash));
  EXPECT_THAT(AttentionCandidates(kBf16, ShapeOf(256), 128, kGpu), ElementsAre(AttentionBackend::kFlash));
  EXPECT_THAT(AttentionCandidates({}, ShapeOf(64), 128, kGpu), IsEmpty());  // fp32
  EXPECT_THAT(AttentionCandidates(kBf16, ShapeOf(64), 128, at::kCPU), IsEmpty());
}

TEST(AttentionCandidatesTest, AreWithoutCudnnWhereAWindowIsShorterThanASpan) {
  EXPECT_THAT(AttentionCandidates(kBf16, ShapeOf(64, 127), 128, kGpu), ElementsAre(AttentionBackend::kFlash));
  EXPECT_EQ(AttentionCandidates(kBf16, ShapeOf(64, 128), 128, kGpu).size(), 2u);
}

TEST(AttentionCandidatesTest, AreWithoutCudnnUnderDeterministicAlgorithms) {
  const bool before = at::globalContext().deterministicAlgorithms();
  at::globalContext().setDeterministicAlgorithms(true, false);
  EXPECT_THAT(AttentionCandidates(kBf16, ShapeOf(64), 128, kGpu), ElementsAre(AttentionBackend::kFlash));
  at::globalContext().setDeterministicAlgorithms(before, false);
}

TEST(FastestAttentionTest, IsTheFirstOfTheFastestThatWork) {
  const AttentionTiming cudnn = {AttentionBackend::kCudnn, 2, ""}, flash = {AttentionBackend::kFlash, 2, ""},
                        faster = {AttentionBackend::kFlash, 1, ""},
                        broken = {AttentionBackend::kCudnn, 0, "no such library"};
  EXPECT_EQ(FastestAttention({cudnn, flash}), AttentionBackend::kCudnn);
  EXPECT_EQ(FastestAttention({cudnn, faster}), AttentionBackend::kFlash);
  EXPECT_EQ(FastestAttention({broken, flash}), AttentionBackend::kFlash);
  EXPECT_EQ(FastestAttention({broken}), AttentionBackend::kAuto);
}

TEST(AttentionBackendOfTest, OfSpansOfOneLengthIsWhatWasChosenForThem) {
  const SpanTable equal({0, 128, 256}), unequal({0, 100, 256});
  Numerics numerics = kBf16;
  EXPECT_EQ(AttentionBackendOf(numerics, ShapeOf(64), equal, kGpu), AttentionBackend::kFlash);
  numerics.equal_spans = AttentionBackend::kCudnn;
  EXPECT_EQ(AttentionBackendOf(numerics, ShapeOf(64), equal, kGpu), AttentionBackend::kCudnn);
  EXPECT_EQ(AttentionBackendOf(numerics, ShapeOf(64), unequal, kGpu), AttentionBackend::kFlash);
  EXPECT_EQ(AttentionBackendOf(numerics, ShapeOf(64, 127), equal, kGpu), AttentionBackend::kFlash);
  EXPECT_EQ(AttentionBackendOf(numerics, ShapeOf(64, 128), equal, kGpu), AttentionBackend::kCudnn);
  numerics.attention = AttentionBackend::kMath;  // asked for
  EXPECT_EQ(AttentionBackendOf(numerics, ShapeOf(64), equal, kGpu), AttentionBackend::kMath);
}

}  // namespace
}  // namespace trainwright
