// Attention timed on the device: every candidate runs, and one that fails is told and not taken.
#include "lib/nn/attention/attention_timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/refusing_device/refusing_device.h"

namespace trainwright {
namespace {

using test::kRefusingDevice;
using testing::HasSubstr;
using testing::IsEmpty;

const Numerics kBf16{Precision::kBf16, at::kBFloat16};
constexpr int64_t kSpanTokens = 16;

TEST(DeviceAttentionTimingTest, TimesEveryCandidate) {
  const AttentionShape shape = {3 * kSpanTokens, 4, 2, 32};
  const auto candidates = AttentionCandidates(kBf16, shape, kSpanTokens, kRefusingDevice);
  ASSERT_EQ(candidates.size(), 2u);
  for (const AttentionTiming& timing :
       TimeAttention(candidates, kBf16, shape, kSpanTokens, kRefusingDevice, /*rounds=*/2)) {
    EXPECT_GT(timing.seconds, 0) << AttentionBackendName(timing.backend);
    EXPECT_THAT(timing.problem, IsEmpty());
  }
}

TEST(DeviceAttentionTimingTest, TellsOfACandidateThatFails) {
  const AttentionShape shape = {kSpanTokens, 2, 2, 256};  // beyond cuDNN's
  const auto timings = TimeAttention({AttentionBackend::kCudnn, AttentionBackend::kFlash}, kBf16, shape,
                                     kSpanTokens, kRefusingDevice, /*rounds=*/1);
  EXPECT_THAT(timings[0].problem, HasSubstr("up to 128, not 256"));
  EXPECT_EQ(FastestAttention(timings), AttentionBackend::kFlash);
}

}  // namespace
}  // namespace trainwright
