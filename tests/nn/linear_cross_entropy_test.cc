#include "lib/nn/loss/linear_cross_entropy.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <tuple>
#include <utility>

#include "tests/nn/reference.h"

namespace trainwright {

void PrintTo(const LossTerms& terms, std::ostream* out) {
  *out << "z_loss " << terms.z_loss << ", label_smoothing " << terms.label_smoothing;
}

namespace {

using test::RandomTensor;

double Reference(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& labels) {
  const at::Tensor logits = hidden.to(at::kDouble).matmul(weight.to(at::kDouble).t());
  const at::Tensor log_probabilities = at::log_softmax(logits, 1);
  double loss = 0;
  for (int64_t i = 0; i < labels.numel(); ++i) {
    const auto label = labels[i].item<int64_t>();
    if (label >= 0) loss -= log_probabilities[i][label].item<double>();
  }
  return loss;
}

at::Tensor Labels(int64_t rows, int64_t vocabulary, int64_t every_ignored) {
  at::Tensor labels = at::full({rows}, -100, at::kLong);
  const Rng rng(test::TestSeed(), "labels");
  for (int64_t i = 0; i < rows; ++i) {
    if (every_ignored == 0 || i % every_ignored != 0) {
      labels[i].fill_(static_cast<int64_t>(rng.Bits(i) % static_cast<uint64_t>(vocabulary)));
    }
  }
  return labels;
}

/// On the CPU.
HeadLabels Head(const at::Tensor& labels_n, const at::Tensor& weights_n = {}) {
  return UploadHeadLabels(labels_n, weights_n, at::kCPU);
}

class LinearCrossEntropyTest : public testing::TestWithParam<int64_t> {
};  // every how many rows one has no label

TEST_P(LinearCrossEntropyTest, LossAndGradientsEqualTheFormula) {
  const at::Tensor hidden = RandomTensor({13, 7}, 1), weight = RandomTensor({11, 7}, 2);
  const at::Tensor labels = Labels(13, 11, GetParam());
  LinearCrossEntropy loss(test::kFp32);
  at::Tensor d_hidden = at::full({13, 7}, NAN);
  const at::Tensor before = RandomTensor({11, 7}, 3);
  at::Tensor d_weight = before.clone();
  const LossSum sum = loss.LossAndGradients(hidden, weight, Head(labels), {}, 0.25, d_hidden, d_weight);
  EXPECT_EQ(sum.num_labels, labels.ge(0).sum().item<int64_t>());
  EXPECT_NEAR(sum.loss_nats, Reference(hidden, weight, labels), 1e-5);
  EXPECT_EQ(loss.Loss(hidden, weight, labels).loss_nats, sum.loss_nats);
  const at::Tensor expected_hidden = test::NumericalGradient(
      [&](const at::Tensor& x) { return 0.25 * Reference(x, weight, labels); }, hidden);
  const at::Tensor expected_weight = test::NumericalGradient(
      [&](const at::Tensor& x) { return 0.25 * Reference(hidden, x, labels); }, weight);
  EXPECT_LT(test::RelativeDifference(d_hidden, expected_hidden), 1e-5);
  EXPECT_LT(test::RelativeDifference(d_weight.sub(before), expected_weight), 1e-5);
}

TEST_P(LinearCrossEntropyTest, WeightsMultiplyTheLossesOfRowsAndTheirGradients) {
  const at::Tensor hidden = RandomTensor({13, 7}, 1), weight = RandomTensor({11, 7}, 2);
  const at::Tensor labels = Labels(13, 11, GetParam());
  const at::Tensor weights = RandomTensor({13}, 4).abs();
  // Each row by itself, without weights.
  double expected = 0;
  at::Tensor expected_hidden = at::zeros({13, 7}), expected_weight = at::zeros({11, 7});
  for (int64_t row = 0; row < 13; ++row) {
    const auto of_row = weights[row].item<double>();
    LinearCrossEntropy loss(test::kFp32);
    at::Tensor d_row = at::zeros({1, 7}), d_weight = at::zeros({11, 7});
    const LossSum sum = loss.LossAndGradients(hidden.narrow(0, row, 1), weight,
                                              Head(labels.narrow(0, row, 1)), {}, 0.25, d_row, d_weight);
    expected += of_row * sum.loss_nats;
    expected_hidden.narrow(0, row, 1).copy_(d_row.mul(of_row));
    expected_weight.add_(d_weight, of_row);
  }
  LinearCrossEntropy loss(test::kFp32);
  at::Tensor d_hidden = at::full({13, 7}, NAN), d_weight = at::zeros({11, 7});
  const LossSum sum =
      loss.LossAndGradients(hidden, weight, Head(labels, weights), {}, 0.25, d_hidden, d_weight);
  EXPECT_NEAR(sum.loss_nats, expected, 1e-5);
  EXPECT_LT(test::RelativeDifference(d_hidden, expected_hidden), 1e-5);
  EXPECT_LT(test::RelativeDifference(d_weight, expected_weight), 1e-5);
}

TEST_P(LinearCrossEntropyTest, WeightsOfOneChangeNoBit) {
  const at::Tensor hidden = RandomTensor({13, 7}, 1), weight = RandomTensor({11, 7}, 2);
  const at::Tensor labels = Labels(13, 11, GetParam());
  const auto gradients_with = [&](const at::Tensor& weights) {
    LinearCrossEntropy loss(test::kFp32);
    at::Tensor d_hidden = at::full({13, 7}, NAN), d_weight = at::zeros({11, 7});
    loss.LossAndGradients(hidden, weight, Head(labels, weights), {}, 0.25, d_hidden, d_weight);
    return std::pair(d_hidden, d_weight);
  };
  const auto without = gradients_with({}), with = gradients_with(at::full({13}, 1.0f));
  EXPECT_TRUE(at::equal(with.first, without.first));
  EXPECT_TRUE(at::equal(with.second, without.second));
}

INSTANTIATE_TEST_SUITE_P(IgnoredRows, LinearCrossEntropyTest, testing::Values(0, 3, 2));

class LossTermsTest : public testing::TestWithParam<LossTerms> {};

TEST_P(LossTermsTest, LossesAndGradientsEqualPyTorchsInDoublePrecision) {
  const LossTerms terms = GetParam();
  // Scaled up so that Z is far from 1 and the terms weigh.
  const at::Tensor hidden = RandomTensor({13, 7}, 1).mul(2.0), weight = RandomTensor({11, 7}, 2);
  const at::Tensor labels = Labels(13, 11, 3);
  const auto smoothed = [&](const at::Tensor& h, const at::Tensor& w, double label_smoothing) {
    const at::Tensor logits = h.to(at::kDouble).matmul(w.to(at::kDouble).t());
    return at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum, -100, label_smoothing)
        .item<double>();
  };
  const auto z_loss = [&](const at::Tensor& h, const at::Tensor& w) {
    const at::Tensor log_z = at::logsumexp(h.to(at::kDouble).matmul(w.to(at::kDouble).t()), {1});
    return static_cast<double>(terms.z_loss) * log_z.square().mul(labels.ge(0)).sum().item<double>();
  };
  const auto objective = [&](const at::Tensor& h, const at::Tensor& w) {
    return 0.25 * (smoothed(h, w, terms.label_smoothing) + z_loss(h, w));
  };

  LinearCrossEntropy loss(test::kFp32);
  at::Tensor d_hidden = at::full({13, 7}, NAN), d_weight = at::zeros({11, 7});
  const LossSum sum = loss.LossAndGradients(hidden, weight, Head(labels), terms, 0.25, d_hidden, d_weight);
  const double plain = smoothed(hidden, weight, 0.0);
  EXPECT_NEAR(sum.loss_nats, plain, 1e-5 * plain);
  EXPECT_NEAR(sum.smoothing_nats, smoothed(hidden, weight, terms.label_smoothing) - plain, 1e-5 * plain);
  EXPECT_NEAR(sum.z_loss_nats, z_loss(hidden, weight), 1e-5 * plain);
  const at::Tensor expected_hidden =
      test::NumericalGradient([&](const at::Tensor& x) { return objective(x, weight); }, hidden);
  const at::Tensor expected_weight =
      test::NumericalGradient([&](const at::Tensor& x) { return objective(hidden, x); }, weight);
  EXPECT_LT(test::RelativeDifference(d_hidden, expected_hidden), 1e-5);
  EXPECT_LT(test::RelativeDifference(d_weight, expected_weight), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Terms, LossTermsTest,
                         testing::Values(LossTerms{}, LossTerms{.z_loss = 0.01f},
                                         LossTerms{.label_smoothing = 0.1f},
                                         LossTerms{.z_loss = 0.01f, .label_smoothing = 0.1f}),
                         [](const auto& info) {
                           const bool z_loss = info.param.z_loss > 0;
                           const bool smoothing = info.param.label_smoothing > 0;
                           return std::string(z_loss && smoothing ? "both"
                                              : z_loss            ? "z_loss"
                                              : smoothing         ? "label_smoothing"
                                                                  : "none");
                         });

TEST(LinearCrossEntropyTest, ManySlicesGiveTheLossOfOne) {
  // A slice has at most 4096 rows, so 9000 take three.
  const at::Tensor hidden = RandomTensor({9000, 4}, 1), weight = RandomTensor({5, 4}, 2);
  const at::Tensor labels = Labels(9000, 5, 7);
  LinearCrossEntropy loss(test::kFp32);
  at::Tensor d_hidden = at::zeros({9000, 4}), d_weight = at::zeros({5, 4});
  const LossSum whole = loss.LossAndGradients(hidden, weight, Head(labels), {}, 1.0, d_hidden, d_weight);
  at::Tensor d_parts = at::zeros({5, 4});
  double parts = 0;
  for (int64_t begin = 0; begin < 9000; begin += 1000) {
    at::Tensor d_part = at::zeros({1000, 4});
    const at::Tensor rows = hidden.narrow(0, begin, 1000), row_labels = labels.narrow(0, begin, 1000);
    parts += loss.LossAndGradients(rows, weight, Head(row_labels), {}, 1.0, d_part, d_parts).loss_nats;
    EXPECT_LT(d_part.sub(d_hidden.narrow(0, begin, 1000)).abs().max().item<double>(), 1e-6);
  }
  EXPECT_NEAR(whole.loss_nats, parts, 1e-9 * parts);
  EXPECT_LT(test::RelativeDifference(d_weight, d_parts), 1e-5);
}

/// Numerics of a device whose logits have pads and lie in such slices.
Numerics PaddedNumerics(int64_t multiple, int64_t slice_logits) {
  Numerics numerics = test::kFp32;
  numerics.vocabulary_multiple = multiple;
  numerics.head_slice_logits = slice_logits;
  return numerics;
}

TEST(LinearCrossEntropyTest, PadsAndSlicesChangeTheOrderOfSumsAlone) {
  constexpr int64_t kRows = 300, kWidth = 6;
  const LossTerms terms = {.z_loss = 0.01f, .label_smoothing = 0.1f};
  for (const int64_t vocabulary : {7, 16, 37}) {  // all of them behind the last multiple, none, some
    const at::Tensor hidden = RandomTensor({kRows, kWidth}, 1).mul(2.0),
                     weight = RandomTensor({vocabulary, kWidth}, 2), labels = Labels(kRows, vocabulary, 5);
    const auto run = [&](const Numerics& numerics) {
      LinearCrossEntropy loss(numerics);
      at::Tensor d_hidden = at::full({kRows, kWidth}, NAN), d_weight = at::zeros({vocabulary, kWidth});
      const LossSum sum =
          loss.LossAndGradients(hidden, weight, Head(labels), terms, 0.25, d_hidden, d_weight);
      EXPECT_EQ(loss.Loss(hidden, weight, labels).loss_nats, sum.loss_nats);
      return std::tuple(sum, d_hidden, d_weight);
    };
    const auto [expected, expected_hidden, expected_weight] = run(test::kFp32);
    for (const int64_t slice_logits : {int64_t{0}, int64_t{1}, int64_t{128 * 40}}) {
      const auto [sum, d_hidden, d_weight] = run(PaddedNumerics(16, slice_logits));
      EXPECT_NEAR(sum.loss_nats, expected.loss_nats, 1e-6 * expected.loss_nats);
      EXPECT_NEAR(sum.smoothing_nats, expected.smoothing_nats, 1e-6 * expected.loss_nats);
      EXPECT_NEAR(sum.z_loss_nats, expected.z_loss_nats, 1e-6 * expected.loss_nats);
      EXPECT_LT(test::RelativeDifference(d_hidden, expected_hidden), 1e-5);
      EXPECT_LT(test::RelativeDifference(d_weight, expected_weight), 1e-5);
    }
  }
}

TEST(LinearCrossEntropyTest, AGradientThatIsToBeWrittenNeedsNoZeros) {
  const at::Tensor hidden = RandomTensor({200, 6}, 1), weight = RandomTensor({37, 6}, 2),
                   labels = Labels(200, 37, 5);
  for (const int64_t multiple : {1, 16}) {
    const auto gradient = [&](GradientTarget target) {
      LinearCrossEntropy loss(PaddedNumerics(multiple, 1));  // several slices, of which the first writes
      at::Tensor d_hidden = at::full({200, 6}, NAN);
      loss.LossAndGradients(hidden, weight, Head(labels), {}, 1.0, d_hidden, target);
      return target.gradient;
    };
    EXPECT_TRUE(
        at::equal(gradient({at::full({37, 6}, NAN), /*accumulate=*/false}), gradient(at::zeros({37, 6}))));
  }
  LinearCrossEntropy loss(test::kFp32);
  at::Tensor d_hidden = at::full({4, 6}, NAN), d_weight = at::full({37, 6}, NAN);
  loss.LossAndGradients(hidden.narrow(0, 0, 4), weight, Head(at::full({4}, -100, at::kLong)), {}, 1.0,
                        d_hidden, {d_weight, /*accumulate=*/false});
  EXPECT_EQ(d_weight.abs().max().item<double>(), 0.0);  // nothing has a label
}

TEST_P(LinearCrossEntropyTest, RowsThatAreComputedWithoutALabelAddNothing) {
  const at::Tensor hidden = RandomTensor({13, 7}, 1), weight = RandomTensor({11, 7}, 2);
  const at::Tensor labels = Labels(13, 11, GetParam());
  const LossTerms terms{.z_loss = 0.01f, .label_smoothing = 0.1f};
  const auto results_of = [&](const HeadLabels& head) {
    LinearCrossEntropy loss(test::kFp32);
    at::Tensor d_hidden = at::full({13, 7}, NAN), d_weight = at::zeros({11, 7});
    const LossSum sum = loss.LossAndGradients(hidden, weight, head, terms, 0.25, d_hidden, d_weight);
    return std::tuple(d_hidden, d_weight, sum.loss_nats, sum.smoothing_nats, sum.z_loss_nats);
  };
  const HeadLabels labelled = Head(labels);
  const auto expected = results_of(labelled);
  const auto all = results_of({.rows = 13, .num_labels = labelled.num_labels, .labels_r = labels});
  EXPECT_LT(test::RelativeDifference(std::get<0>(all), std::get<0>(expected)), 1e-6);
  EXPECT_LT(test::RelativeDifference(std::get<1>(all), std::get<1>(expected)), 1e-6);
  EXPECT_EQ(std::get<2>(all), std::get<2>(expected));
  EXPECT_EQ(std::get<3>(all), std::get<3>(expected));
  EXPECT_EQ(std::get<4>(all), std::get<4>(expected));
}

TEST(LinearCrossEntropyTest, LargeLogitsNeitherOverflowNorVanish) {
  const at::Tensor hidden = at::full({1, 1}, 1000.0f);
  at::Tensor weight = at::zeros({3, 1});
  weight[0].fill_(1.0f);
  LinearCrossEntropy loss(test::kFp32);
  EXPECT_NEAR(loss.Loss(hidden, weight, at::full({1}, 0, at::kLong)).loss_nats, 0.0, 1e-6);
  EXPECT_NEAR(loss.Loss(hidden, weight, at::full({1}, 2, at::kLong)).loss_nats, 1000.0, 1e-3);
}

TEST(LinearCrossEntropyTest, WithoutLabelsThereIsNoLossAndNoGradient) {
  LinearCrossEntropy loss(test::kFp32);
  at::Tensor d_hidden = at::full({4, 3}, NAN), d_weight = at::zeros({5, 3});
  const LossSum sum =
      loss.LossAndGradients(RandomTensor({4, 3}, 1), RandomTensor({5, 3}, 2),
                            Head(at::full({4}, -100, at::kLong)), {}, 1.0, d_hidden, d_weight);
  EXPECT_EQ(sum.num_labels, 0);
  EXPECT_EQ(sum.loss_nats, 0.0);
  EXPECT_EQ(d_hidden.abs().max().item<double>(), 0.0);
}

}  // namespace
}  // namespace trainwright
