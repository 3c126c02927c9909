#include "lib/probe/attention_matrix.h"

#include <gtest/gtest.h>

#include <set>

namespace trainwright {
namespace {

const c10::Device kCpu(c10::DeviceType::CPU);
const c10::Device kGpuByRules(c10::DeviceType::Meta);

const AttentionAnswer& Find(const std::vector<AttentionAnswer>& answers, const AttentionCase& wanted) {
  for (const AttentionAnswer& answer : answers) {
    if (answer.of.precision == wanted.precision && answer.of.head_dim == wanted.head_dim &&
        answer.of.mask == wanted.mask && answer.of.backend == wanted.backend) {
      return answer;
    }
  }
  ADD_FAILURE() << "no answer for heads of " << wanted.head_dim;
  static const AttentionAnswer none;
  return none;
}

TEST(AskAttentionTest, ACpuTakesItsOwnAndMathAndTriesEachOfThem) {
  for (const AttentionAnswer& answer : AskAttention(kCpu, /*tries=*/true)) {
    const bool takes =
        answer.of.backend == AttentionBackend::kAuto || answer.of.backend == AttentionBackend::kMath;
    EXPECT_EQ(answer.accepts, takes) << EncodeAttentionAnswer(answer);
    EXPECT_EQ(answer.tried, takes) << EncodeAttentionAnswer(answer);
    EXPECT_EQ(answer.reason.empty(), takes) << EncodeAttentionAnswer(answer);
  }
}

// FlashAttention 2 and cuDNN: 16-bit types, heads of a multiple of 8 up to 256 and 128; CUTLASS: any type.
TEST(AskAttentionTest, TellsTheRulesOfAGpuWithoutOne) {
  const std::vector<AttentionAnswer> answers = AskAttention(kGpuByRules, /*tries=*/false);
  struct Row {
    AttentionBackend backend;
    Precision precision;
    std::set<int64_t> takes, refuses;
  };
  const Row rows[] = {
      {AttentionBackend::kFlash, Precision::kBf16, {64, 80, 128, 192, 256}, {36, 512}},
      {AttentionBackend::kFlash, Precision::kFp16, {64, 256}, {36, 512}},
      {AttentionBackend::kFlash, Precision::kFp32, {}, {64, 128}},
      {AttentionBackend::kCudnn, Precision::kBf16, {64, 96, 128}, {36, 192, 256}},
      {AttentionBackend::kCudnn, Precision::kFp32, {}, {64}},
      {AttentionBackend::kEfficient, Precision::kBf16, {64, 256, 512}, {36}},
      {AttentionBackend::kEfficient, Precision::kFp32, {36, 64, 512}, {}},
      {AttentionBackend::kMath, Precision::kFp32, {36, 64, 512}, {}},
  };
  for (const Row& row : rows) {
    for (const ProbedMask mask : kProbedMasks) {
      const auto answer = [&](int64_t head_dim) {
        return Find(answers,
                    {.precision = row.precision, .head_dim = head_dim, .mask = mask, .backend = row.backend});
      };
      for (const int64_t head_dim : row.takes) {
        EXPECT_TRUE(answer(head_dim).accepts) << EncodeAttentionAnswer(answer(head_dim));
      }
      for (const int64_t head_dim : row.refuses) {
        EXPECT_FALSE(answer(head_dim).accepts) << EncodeAttentionAnswer(answer(head_dim));
        EXPECT_NE(answer(head_dim).reason, "");
      }
    }
  }
  for (const AttentionAnswer& answer : answers) EXPECT_FALSE(answer.tried);
}

}  // namespace
}  // namespace trainwright
