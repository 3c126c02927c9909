#include "lib/nn/attention/attention.h"

#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "lib/base/error.h"
#include "lib/nn/attention/attention_backend.h"
#include "lib/nn/precision_limits.h"
#include "tests/nn/attention_reference.h"
#include "tests/nn/reference.h"

namespace trainwright {
namespace {

using test::RandomTensor;

struct Case {
  const char* name;
  AttentionShape shape;
  std::vector<int32_t> spans;
};

void PrintTo(const Case& attention_case, std::ostream* out) {
  *out << attention_case.name;
}

class PackedAttentionTest : public testing::TestWithParam<Case> {};

/// Both masks on the backends that a CPU has: our kernels with torch's flash, and plain products.
constexpr std::pair<AttentionMask, AttentionBackend> kMasksAndBackends[] = {
    {AttentionMask::kCausal, AttentionBackend::kAuto},
    {AttentionMask::kCausal, AttentionBackend::kMath},
    {AttentionMask::kBidirectional, AttentionBackend::kAuto},
    {AttentionMask::kBidirectional, AttentionBackend::kMath}};

TEST_P(PackedAttentionTest, ForwardAndBackwardEqualTheFormula) {
  const std::vector<int32_t>& spans = GetParam().spans;
  for (const auto& [mask, backend] : kMasksAndBackends) {
    SCOPED_TRACE(AttentionBackendName(backend) + " " + test::MaskName(mask));
    AttentionShape shape = GetParam().shape;
    shape.mask = mask;
    const at::Tensor qkv = RandomTensor({shape.num_tokens, shape.row()}, 1);
    const at::Tensor d_out = RandomTensor({shape.num_tokens, shape.num_heads * shape.head_dim}, 2);
    const Numerics numerics{Precision::kFp32, at::kFloat, backend};
    at::Tensor out = at::full_like(d_out, NAN), lse = at::full({shape.num_heads, shape.num_tokens}, NAN);
    PackedAttention(numerics, shape, qkv, spans, out, lse);
    EXPECT_LT(test::RelativeDifference(out, test::Attention(qkv, shape, spans)), 1e-6);

    at::Tensor d_qkv = at::full_like(qkv, NAN);
    PackedAttentionBackward(numerics, shape, d_out, qkv, out, lse, spans, d_qkv);
    EXPECT_LT(test::RelativeDifference(d_qkv, test::AttentionGradient(d_out, qkv, shape, spans)), 1e-5);
  }
}

TEST(AttentionReferenceTest, ItsGradientEqualsFiniteDifferences) {
  const std::vector<int32_t> spans = {0, 2, 9};
  for (const AttentionMask mask : test::kMasks) {
    for (const int64_t window : {0, 3}) {
      const AttentionShape shape{9, 4, 2, 4, window, mask};
      const at::Tensor qkv = RandomTensor({9, shape.row()}, 1), d_out = RandomTensor({9, 16}, 2);
      const at::Tensor expected = test::NumericalGradient(
          [&](const at::Tensor& x) {
            return test::Attention(x, shape, spans).mul(d_out).sum().item<double>();
          },
          qkv);
      EXPECT_LT(test::RelativeDifference(test::AttentionGradient(d_out, qkv, shape, spans), expected), 1e-6)
          << test::MaskName(mask) << " window " << window;
    }
  }
}

TEST(AttentionReferenceTest, ATokenSeesWhatTheMaskAndTheWindowSay) {
  // With equal scores a token's result is the mean of the values that it sees: those of its place number.
  const auto means = [](int64_t window, AttentionMask mask) {
    const AttentionShape shape{5, 1, 1, 1, window, mask};
    at::Tensor qkv = at::zeros({5, 3});
    for (int64_t i = 0; i < 5; ++i) qkv[i][2] = static_cast<double>(i);
    const at::Tensor out = test::Attention(qkv, shape, {0, 5});
    return std::vector<double>(out.const_data_ptr<double>(), out.const_data_ptr<double>() + 5);
  };
  const auto causal = AttentionMask::kCausal, bidirectional = AttentionMask::kBidirectional;
  EXPECT_THAT(means(0, causal), testing::Pointwise(testing::DoubleNear(1e-12), {0.0, 0.5, 1.0, 1.5, 2.0}));
  EXPECT_THAT(means(2, causal), testing::Pointwise(testing::DoubleNear(1e-12), {0.0, 0.5, 1.5, 2.5, 3.5}));
  EXPECT_THAT(means(0, bidirectional),
              testing::Pointwise(testing::DoubleNear(1e-12), {2.0, 2.0, 2.0, 2.0, 2.0}));
  EXPECT_THAT(means(2, bidirectional),
              testing::Pointwise(testing::DoubleNear(1e-12), {0.5, 1.0, 2.0, 3.0, 3.5}));
}

class LongSpanTest : public testing::TestWithParam<std::tuple<Case, at::ScalarType>> {};

TEST_P(LongSpanTest, ForwardAndBackwardEqualTheFormula) {
  const auto& [params, dtype] = GetParam();
  const std::vector<int32_t>& spans = params.spans;
  const Numerics numerics{dtype == at::kFloat ? Precision::kFp32 : Precision::kBf16, dtype};
  const double tolerance = dtype == at::kFloat ? 2e-6 : 1e-2;
  for (const AttentionMask mask : test::kMasks) {
    SCOPED_TRACE(test::MaskName(mask));
    AttentionShape shape = params.shape;
    shape.mask = mask;
    const at::Tensor qkv = RandomTensor({shape.num_tokens, shape.row()}, 1).to(dtype);
    const at::Tensor d_out = RandomTensor({shape.num_tokens, shape.num_heads * shape.head_dim}, 2).to(dtype);
    at::Tensor out = at::full_like(d_out, NAN), lse = at::full({shape.num_heads, shape.num_tokens}, NAN);
    PackedAttention(numerics, shape, qkv, spans, out, lse);
    EXPECT_LT(test::RelativeDifference(out, test::Attention(qkv, shape, spans)), tolerance);
    at::Tensor d_qkv = at::full_like(qkv, NAN);
    PackedAttentionBackward(numerics, shape, d_out, qkv, out, lse, spans, d_qkv);
    EXPECT_LT(test::RelativeDifference(d_qkv, test::AttentionGradient(d_out, qkv, shape, spans)), tolerance);
  }
}

TEST(LongSpanPaddingTest, LargeScoresOfPaddingReachNoGradient) {
  // A logsumexp far below zero would make e^(0 - lse) of the rows that fill up a block overflow.
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Numerics numerics{dtype == at::kFloat ? Precision::kFp32 : Precision::kBf16, dtype};
    const AttentionShape shape{70, 1, 1, 32, 0, AttentionMask::kBidirectional};
    at::Tensor qkv = at::full({70, shape.row()}, 10.0, dtype);
    qkv.narrow(1, 32, 32).fill_(-10.0);  // scores of -566
    qkv.narrow(1, 64, 32).copy_(RandomTensor({70, 32}, 1));
    const at::Tensor d_out = RandomTensor({70, 32}, 2).to(dtype);
    at::Tensor out = at::full_like(d_out, NAN), lse = at::full({1, 70}, NAN), d_qkv = at::full_like(qkv, NAN);
    PackedAttention(numerics, shape, qkv, {{0, 70}}, out, lse);
    PackedAttentionBackward(numerics, shape, d_out, qkv, out, lse, {{0, 70}}, d_qkv);
    EXPECT_LT(test::RelativeDifference(out, test::Attention(qkv, shape, {0, 70})), 1e-2);
    EXPECT_TRUE(d_qkv.isfinite().all().item<bool>());
  }
}

// Heads of a multiple of 32 elements are computed in blocks of 64 positions that meet up to 512 others at
// once.
INSTANTIATE_TEST_SUITE_P(
    Shapes, LongSpanTest,
    testing::Combine(testing::Values(Case{"one_block_and_a_row", {65, 2, 2, 32}, {0, 65}},
                                     Case{"whole_blocks", {128, 1, 1, 64}, {0, 128}},
                                     Case{"many_blocks_grouped", {1110, 4, 2, 32}, {0, 7, 80, 1107, 1110}},
                                     Case{"wide_heads", {600, 2, 1, 128}, {0, 600}},
                                     Case{"window_below_a_block", {300, 2, 1, 32, 17}, {0, 70, 300}},
                                     Case{"window_of_blocks", {700, 2, 2, 32, 128}, {0, 700}},
                                     Case{"window_beyond_reach", {1300, 1, 1, 32, 650}, {0, 1300}},
                                     Case{"window_of_the_span", {200, 1, 1, 32, 200}, {0, 200}}),
                     testing::Values(at::kFloat, at::kBFloat16)),
    [](const auto& info) {
      return std::get<0>(info.param).name +
             std::string(std::get<1>(info.param) == at::kFloat ? "_fp32" : "_bf16");
    });

TEST(AttentionBackendTest, AutoTakesTheFirstThatFits) {
  const at::Device gpu(at::kCUDA), cpu(at::kCPU);
  const auto resolve = [&](int64_t head_dim, at::ScalarType dtype) {
    return ResolveAttentionBackend(AttentionBackend::kAuto, head_dim, dtype, gpu);
  };
  EXPECT_EQ(resolve(64, at::kBFloat16), AttentionBackend::kFlash);
  EXPECT_EQ(resolve(256, at::kHalf), AttentionBackend::kFlash);
  EXPECT_EQ(resolve(264, at::kBFloat16), AttentionBackend::kEfficient);
  EXPECT_EQ(resolve(64, at::kFloat), AttentionBackend::kEfficient);
  EXPECT_EQ(resolve(12, at::kBFloat16), AttentionBackend::kMath);
  EXPECT_EQ(ResolveAttentionBackend(AttentionBackend::kAuto, 64, at::kFloat, cpu), AttentionBackend::kAuto);
}

TEST(AttentionBackendTest, AGpuOfCapability75ComputesByMemoryEfficientAttention) {
  const GpuLimits turing = LimitsOf({.name = "Tesla T4", .capability_major = 7, .capability_minor = 5});
  for (const at::ScalarType dtype : {at::kHalf, at::kFloat}) {
    EXPECT_EQ(ResolveAttentionBackend(AttentionBackend::kAuto, 64, dtype, turing),
              AttentionBackend::kEfficient);
  }
  for (const AttentionBackend backend : {AttentionBackend::kFlash, AttentionBackend::kCudnn}) {
    EXPECT_THAT(test::MessageOf([&] { ResolveAttentionBackend(backend, 64, at::kHalf, turing); }),
                testing::HasSubstr(
                    "needs compute capability 8.0: this is GPU 0 (Tesla T4) of compute capability 7.5"));
  }
}

TEST(RequireProductsTest, AGpuOfCapability75RefusesBf16AndTakesFp16) {
  const GpuLimits turing = LimitsOf({.name = "Tesla T4", .capability_major = 7, .capability_minor = 5});
  const std::string refusal = test::MessageOf([&] { RequireProducts(Precision::kBf16, turing); });
  EXPECT_THAT(refusal, testing::HasSubstr("GPU 0 (Tesla T4) of compute capability 7.5 has no bf16 GEMMs"));
  EXPECT_THAT(refusal, testing::HasSubstr("use --mixed-precision fp16"));
  RequireProducts(Precision::kFp16, turing);
  RequireProducts(Precision::kFp32, turing);
  RequireProducts(Precision::kBf16, LimitsOf({.capability_major = 8, .capability_minor = 0}));
}

TEST(RequireFp8Test, AGpuBeforeCapability89AndAnotherPrecisionThanBf16AreRefused) {
  const GpuLimits ampere = LimitsOf({.name = "A100", .capability_major = 8, .capability_minor = 0}),
                  ada = LimitsOf({.name = "L4", .capability_major = 8, .capability_minor = 9});
  EXPECT_THAT(test::MessageOf([&] { RequireFp8(Precision::kBf16, ampere); }),
              testing::HasSubstr("GPU 0 (A100) of compute capability 8.0 has no fp8 GEMMs"));
  RequireFp8(Precision::kBf16, ada);
  RequireFp8(Precision::kBf16, GpuLimits());
  for (const Precision precision : {Precision::kFp32, Precision::kFp16}) {
    EXPECT_THAT(test::MessageOf([&] { RequireFp8(precision, ada); }),
                testing::HasSubstr("goes with bf16 alone, and this is " + PrecisionName(precision)));
  }
}

TEST(PrecisionTest, AutoFallsBackToFp16OnAGpuWithoutBf16AndToFp32WhereNeitherIsFast) {
  const auto chosen = [](const GpuLimits& limits) {
    return ParsePrecision("auto", HasFastProducts(Precision::kBf16, limits),
                          HasFastProducts(Precision::kFp16, limits));
  };
  EXPECT_EQ(chosen(LimitsOf({.capability_major = 7, .capability_minor = 5})), Precision::kFp16);
  EXPECT_EQ(chosen(LimitsOf({.capability_major = 8, .capability_minor = 0})), Precision::kBf16);
  EXPECT_EQ(chosen(LimitsOf({.capability_major = 9, .capability_minor = 0})), Precision::kBf16);
  EXPECT_EQ(ParsePrecision("auto", false, false), Precision::kFp32) << "a CPU";
  // Who names a precision gets it or none.
  EXPECT_EQ(ParsePrecision("bf16", false, true), Precision::kBf16);
  EXPECT_EQ(ParsePrecision("no", true, true), Precision::kFp32);
}

TEST(AttentionBackendTest, ABackendThatCannotTakeTheHeadsSaysWhy) {
  const auto refusal = [](const char* name, int64_t head_dim, at::ScalarType dtype, at::DeviceType device) {
    try {
      const AttentionBackend asked = ParseAttentionBackend(name, "--attn-backend");
      ResolveAttentionBackend(asked, head_dim, dtype, at::Device(device));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refusal("flash", 64, at::kFloat, at::kCUDA),
              testing::HasSubstr("bf16 and fp16 only, not fp32"));
  EXPECT_THAT(refusal("flash", 12, at::kHalf, at::kCUDA),
              testing::HasSubstr("multiple of 8 elements up to 256"));
  EXPECT_THAT(refusal("cudnn", 192, at::kHalf, at::kCUDA), testing::HasSubstr("up to 128, not 192"));
  EXPECT_THAT(refusal("flash", 64, at::kBFloat16, at::kCPU), testing::HasSubstr("runs on a GPU only"));
  EXPECT_THAT(refusal("flush", 64, at::kHalf, at::kCUDA), testing::HasSubstr("unknown attention backend"));
  EXPECT_EQ(refusal("math", 7, at::kFloat, at::kCPU), "accepted");
}

// Spans of up to 64 tokens take our own row by row kernel, longer ones with such heads torch's.
INSTANTIATE_TEST_SUITE_P(Shapes, PackedAttentionTest,
                         testing::Values(Case{"short_grouped", {12, 4, 2, 6}, {0, 1, 5, 12}},
                                         Case{"odd_heads", {9, 3, 1, 4}, {0, 9}},
                                         Case{"long_grouped", {67, 2, 1, 4}, {0, 67}},
                                         Case{"mixed", {74, 2, 2, 2}, {0, 4, 70, 74}},
                                         Case{"short_windowed", {12, 4, 2, 6, 3}, {0, 1, 5, 12}},
                                         Case{"itself_alone", {9, 3, 1, 4, 1}, {0, 9}},
                                         Case{"long_windowed", {150, 2, 1, 4, 70}, {0, 70, 150}}),
                         [](const auto& info) { return info.param.name; });

/// Head sizes that fill vectors of each width, and that do not.
class DecodeAttentionTest
    : public testing::TestWithParam<std::tuple<int64_t /*window*/, int64_t /*head size*/, at::ScalarType>> {};

INSTANTIATE_TEST_SUITE_P(Shapes, DecodeAttentionTest,
                         testing::Combine(testing::Values(0, 1, 7, 20, 50),
                                          testing::Values(5, 8, 24, 64, 144),
                                          testing::Values(at::kFloat, at::kBFloat16)));

TEST_P(DecodeAttentionTest, EachRowEqualsItsRowOfTheWholeSequence) {
  const auto [window, size, dtype] = GetParam();
  const AttentionShape shape{4, 6, 2, size, window};
  const at::Tensor first = RandomTensor({20, shape.row()}, 1).to(dtype),
                   second = RandomTensor({9, shape.row()}, 2).to(dtype);
  at::Tensor keys = at::zeros({3, 2, 25, size}, dtype), values = at::zeros({3, 2, 25, size}, dtype);
  const auto fill = [&](const at::Tensor& qkv, int64_t sequence) {
    std::vector<CachePlace> places;
    for (int64_t i = 0; i < qkv.size(0); ++i) places.push_back({sequence, i});
    FillCache(shape, qkv, places, keys, values);
  };
  fill(first, 2);
  fill(second, 0);
  // The last row of one sequence, two of the other, and a row without a place.
  const at::Tensor rows = at::stack({first[19], second[7], second[8], first[0]});
  at::Tensor out = at::full({4, 6 * size}, 7.0, dtype);
  const Numerics numerics{dtype == at::kFloat ? Precision::kFp32 : Precision::kBf16, dtype};
  DecodeAttention(numerics, shape, rows, {{2, 19}, {0, 7}, {0, 8}}, keys, values, out);
  const auto whole = [&](const at::Tensor& qkv) {
    return test::Attention(qkv.to(at::kFloat), {qkv.size(0), 6, 2, size, window},
                           {0, static_cast<int32_t>(qkv.size(0))});
  };
  const double tolerance = dtype == at::kFloat ? 1e-6 : 4e-3;  // bf16: half a unit of the last place
  EXPECT_LT(test::RelativeDifference(out[0].to(at::kFloat), whole(first)[19]), tolerance);
  EXPECT_LT(test::RelativeDifference(out[1].to(at::kFloat), whole(second)[7]), tolerance);
  EXPECT_LT(test::RelativeDifference(out[2].to(at::kFloat), whole(second)[8]), tolerance);
  EXPECT_EQ(out[3].abs().max().item<float>(), 0);
}

}  // namespace
}  // namespace trainwright
