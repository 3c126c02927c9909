#include "lib/nn/pooling/span_pooling.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/nn/reference.h"

namespace trainwright {

void PrintTo(Pooling pooling, std::ostream* out) {
  *out << PoolingName(pooling);
}

namespace {

using test::RandomTensor;

constexpr int64_t kRows = 23, kWidth = 19;

/// Texts of 1 to 9 rows, with instructions and without, with rows between them that are of none.
PooledSpans SomeSpans() {
  return {.begin = {0, 5, 6, 17}, .end = {5, 6, 15, 23}, .first_pooled = {2, 5, 6, 22}};
}

/// Row by row in double, from the definitions of the four.
std::vector<double> WeightsOf(Pooling pooling, const PooledSpans& spans, size_t text) {
  std::vector<double> weights(kRows, 0.0);
  for (int64_t row = 0; row < kRows; ++row) {
    const auto at = static_cast<size_t>(row);
    const bool pooled = row >= spans.first_pooled[text] && row < spans.end[text];
    if (pooling == Pooling::kMean && pooled) weights[at] = 1;
    if (pooling == Pooling::kWeightedMean && pooled) {
      weights[at] = static_cast<double>(row - spans.first_pooled[text] + 1);
    }
    if (pooling == Pooling::kCls && row == spans.begin[text]) weights[at] = 1;
    if (pooling == Pooling::kLastToken && row + 1 == spans.end[text]) weights[at] = 1;
  }
  double total = 0;
  for (const double weight : weights) total += weight;
  for (double& weight : weights) weight /= total;
  return weights;
}

at::Tensor Expected(Pooling pooling, const PooledSpans& spans, const at::Tensor& hidden_nd) {
  const at::Tensor hidden = hidden_nd.to(at::kDouble);
  at::Tensor out = at::zeros({spans.texts(), hidden.size(1)}, at::kDouble);
  for (size_t text = 0; text < spans.begin.size(); ++text) {
    const std::vector<double> weights = WeightsOf(pooling, spans, text);
    for (int64_t row = 0; row < kRows; ++row) {
      out[static_cast<int64_t>(text)].add_(hidden[row].mul(weights[static_cast<size_t>(row)]));
    }
  }
  return out;
}

class SpanPoolingTest : public testing::TestWithParam<Pooling> {};

INSTANTIATE_TEST_SUITE_P(All, SpanPoolingTest,
                         testing::Values(Pooling::kMean, Pooling::kWeightedMean, Pooling::kCls,
                                         Pooling::kLastToken),
                         [](const auto& info) { return PoolingName(info.param); });

TEST_P(SpanPoolingTest, VectorsEqualTheWeightedMeansInDouble) {
  const at::Tensor hidden = RandomTensor({kRows, kWidth}, 1);
  at::Tensor out = at::full({4, kWidth}, NAN);
  PoolSpans(GetParam(), SomeSpans(), hidden, out);
  EXPECT_LT(test::RelativeDifference(out, Expected(GetParam(), SomeSpans(), hidden)), 1e-6);
}

TEST_P(SpanPoolingTest, OfBf16TheSumsAreThoseOfFp32) {
  const at::Tensor hidden = RandomTensor({kRows, kWidth}, 1).to(at::kBFloat16);
  at::Tensor out = at::full({4, kWidth}, NAN), of_fp32 = at::full({4, kWidth}, NAN);
  PoolSpans(GetParam(), SomeSpans(), hidden, out);
  PoolSpans(GetParam(), SomeSpans(), hidden.to(at::kFloat), of_fp32);
  EXPECT_TRUE(at::equal(out, of_fp32));
}

TEST_P(SpanPoolingTest, GradientsEqualFiniteDifferencesAndRowsThatAreNotPooledGetNone) {
  const at::Tensor hidden = RandomTensor({kRows, kWidth}, 1), d_out = RandomTensor({4, kWidth}, 2);
  at::Tensor d_hidden = at::full({kRows, kWidth}, NAN);
  PoolSpansBackward(GetParam(), SomeSpans(), d_out, d_hidden);
  const at::Tensor expected = test::NumericalGradient(
      [&](const at::Tensor& x) {
        return Expected(GetParam(), SomeSpans(), x).mul(d_out).sum().item<double>();
      },
      hidden);
  EXPECT_LT(test::RelativeDifference(d_hidden, expected), 1e-6);
  EXPECT_EQ(d_hidden[16].abs().max().item<double>(), 0.0);  // of no text
}

TEST_P(SpanPoolingTest, GradientsInBf16AreThoseOfFp32RoundedOnce) {
  const at::Tensor d_out = RandomTensor({4, kWidth}, 2);
  at::Tensor d_hidden = at::full({kRows, kWidth}, NAN);
  at::Tensor d_short = at::full({kRows, kWidth}, NAN, at::kBFloat16);
  PoolSpansBackward(GetParam(), SomeSpans(), d_out, d_hidden);
  PoolSpansBackward(GetParam(), SomeSpans(), d_out, d_short);
  EXPECT_TRUE(at::equal(d_short, d_hidden.to(at::kBFloat16)));
}

TEST_P(SpanPoolingTest, ATextsBitsDoNotDependOnTheOthers) {
  const at::Tensor hidden = RandomTensor({kRows, kWidth}, 1);
  const PooledSpans spans = SomeSpans();
  at::Tensor together = at::empty({4, kWidth});
  PoolSpans(GetParam(), spans, hidden, together);
  for (size_t text = 0; text < spans.begin.size(); ++text) {
    const int64_t begin = spans.begin[text], length = spans.end[text] - begin;
    const PooledSpans own = {.begin = {0},
                             .end = {static_cast<int32_t>(length)},
                             .first_pooled = {static_cast<int32_t>(spans.first_pooled[text] - begin)}};
    at::Tensor alone = at::empty({1, kWidth});
    PoolSpans(GetParam(), own, hidden.narrow(0, begin, length), alone);
    EXPECT_TRUE(at::equal(alone[0], together[static_cast<int64_t>(text)])) << "text " << text;
  }
}

TEST_P(SpanPoolingTest, WhatOtherDevicesComputeIsTheSame) {
  const at::Tensor hidden = RandomTensor({kRows, kWidth}, 1), d_out = RandomTensor({4, kWidth}, 2);
  at::Tensor own = at::empty({4, kWidth}), other = at::empty({4, kWidth});
  PoolSpans(GetParam(), SomeSpans(), hidden, own);
  on_device::PoolSpans(GetParam(), SomeSpans(), hidden, other);
  EXPECT_LT(test::RelativeDifference(other, own), 1e-6);
  at::Tensor d_own = at::empty({kRows, kWidth}), d_other = at::empty({kRows, kWidth});
  PoolSpansBackward(GetParam(), SomeSpans(), d_out, d_own);
  on_device::PoolSpansBackward(GetParam(), SomeSpans(), d_out, d_other);
  EXPECT_LT(test::RelativeDifference(d_other, d_own), 1e-6);
}

TEST(PoolingNameTest, EachNameStandsForItsPooling) {
  for (const std::string& name : PoolingNames()) EXPECT_EQ(PoolingName(FindPooling(name).value()), name);
  EXPECT_FALSE(FindPooling("max").has_value());
}

/// x / |x|, row by row.
at::Tensor Unit(const at::Tensor& x) {
  return x.div(x.norm(2, {1}, /*keepdim=*/true));
}

TEST(NormalizeRowsTest, RowsHaveUnitLengthAndTheirNormsAreKept) {
  const at::Tensor x = RandomTensor({7, kWidth}, 3);
  at::Tensor unit = x.clone(), norm = at::empty({7});
  NormalizeRows(unit, norm);
  EXPECT_LT(test::RelativeDifference(unit, Unit(x.to(at::kDouble))), 1e-6);
  EXPECT_LT(test::RelativeDifference(norm, x.to(at::kDouble).norm(2, {1})), 1e-6);
}

TEST(NormalizeRowsTest, GradientsEqualFiniteDifferences) {
  const at::Tensor x = RandomTensor({7, kWidth}, 3), d_unit = RandomTensor({7, kWidth}, 4);
  at::Tensor unit = x.clone(), norm = at::empty({7}), gradient = d_unit.clone();
  NormalizeRows(unit, norm);
  NormalizeRowsBackward(unit, norm, gradient);
  const at::Tensor expected = test::NumericalGradient(
      [&](const at::Tensor& at_point) { return Unit(at_point).mul(d_unit).sum().item<double>(); }, x);
  EXPECT_LT(test::RelativeDifference(gradient, expected), 1e-5);
}

TEST(NormalizeRowsTest, ARowOfZerosStaysAndItsGradientIsZero) {
  at::Tensor unit = RandomTensor({3, kWidth}, 3), norm = at::empty({3});
  unit[1].zero_();
  NormalizeRows(unit, norm);
  EXPECT_EQ(norm[1].item<double>(), 0.0);
  EXPECT_EQ(unit[1].abs().max().item<double>(), 0.0);
  at::Tensor gradient = at::full({3, kWidth}, 1.0f);
  NormalizeRowsBackward(unit, norm, gradient);
  EXPECT_EQ(gradient[1].abs().max().item<double>(), 0.0);
  EXPECT_GT(gradient[0].abs().max().item<double>(), 0.0);
}

TEST(NormalizeRowsTest, TinyAndHugeRowsHaveUnitLengthToo) {
  at::Tensor unit = at::full({2, 4}, 1e-30f), norm = at::empty({2});
  unit[1].fill_(1e30f);
  NormalizeRows(unit, norm);
  EXPECT_LT(unit.sub(0.5).abs().max().item<double>(), 1e-6);
}

TEST(NormalizeRowsTest, WhatOtherDevicesComputeIsTheSame) {
  at::Tensor own = RandomTensor({7, kWidth}, 3);
  own[2].zero_();
  at::Tensor other = own.clone(), own_norm = at::empty({7}), other_norm = at::empty({7});
  NormalizeRows(own, own_norm);
  on_device::NormalizeRows(other, other_norm);
  EXPECT_LT(test::RelativeDifference(other, own), 1e-6);
  EXPECT_LT(test::RelativeDifference(other_norm, own_norm), 1e-6);
  at::Tensor d_own = RandomTensor({7, kWidth}, 4), d_other = d_own.clone();
  NormalizeRowsBackward(own, own_norm, d_own);
  on_device::NormalizeRowsBackward(own, own_norm, d_other);
  EXPECT_LT(test::RelativeDifference(d_other, d_own), 1e-6);
}

}  // namespace
}  // namespace trainwright
