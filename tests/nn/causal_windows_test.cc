#include "lib/nn/pooling/causal_windows.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/nn/reference.h"

namespace trainwright {
namespace {

using test::RandomTensor;

constexpr int64_t kWidth = 5;

/// Spans of 1, 7, 8, 17 and 3 rows: without a window of eight, with a window and nothing else, with what is
/// left of one.
SpanTable SomeSpans() {
  return SpanTable({0, 1, 8, 16, 33, 36});
}

/// All that the forward pass writes.
struct Windowed {
  at::Tensor mean_mw, after_sw, out_nw;
};

/// Means of x, and y spread; nothing came before the spans unless it is given.
Windowed RunWindows(const CausalWindows& windows, const at::Tensor& x_nw, const at::Tensor& y_mw,
                    const at::Tensor& sum_before_sw = {}, const at::Tensor& seen_before_sw = {}) {
  const int64_t width = x_nw.size(1);
  Windowed result{.mean_mw = at::full({windows.count(), width}, 99.0f, x_nw.options()),
                  .after_sw = at::full({windows.num_spans(), width}, 99.0f),
                  .out_nw = at::full({x_nw.size(0), width}, 99.0f, x_nw.options())};
  WindowMeans(windows, x_nw, sum_before_sw, result.mean_mw, result.after_sw);
  SpreadWindows(windows, y_mw, seen_before_sw, result.out_nw);
  return result;
}

/// In double, span by span and row by row, from the definition.
Windowed Expected(const SpanTable& spans, int64_t size, const at::Tensor& x_nw, const at::Tensor& y_mw) {
  const at::Tensor x = x_nw.to(at::kDouble), y = y_mw.to(at::kDouble);
  Windowed result{.mean_mw = at::zeros_like(y),
                  .after_sw = at::zeros({std::ssize(spans.starts) - 1, kWidth}, at::kDouble),
                  .out_nw = at::zeros_like(x)};
  int64_t windows_before = 0;
  for (int64_t span = 0; span < result.after_sw.size(0); ++span) {
    const int64_t begin = spans.starts[static_cast<size_t>(span)],
                  length = spans.starts[static_cast<size_t>(span) + 1] - begin;
    for (int64_t t = 0; t < length; ++t) {
      const int64_t own = t / size, seen = (t + 1) / size - 1;
      if (own < length / size) {
        result.mean_mw[windows_before + own].add_(x[begin + t].div(size));
      } else {
        result.after_sw[span].add_(x[begin + t]);
      }
      if (seen >= 0) result.out_nw[begin + t].copy_(y[windows_before + seen]);
    }
    windows_before += length / size;
  }
  return result;
}

double Difference(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() == 0 ? 0 : a.to(at::kDouble).sub(b.to(at::kDouble)).abs().max().item<double>();
}

class CausalWindowsTest : public ::testing::TestWithParam<int64_t> {
 protected:
  int64_t size() const { return GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Sizes, CausalWindowsTest, ::testing::Values(1, 2, 3, 8, 40));

TEST_P(CausalWindowsTest, ARowSeesTheLastWindowThatIsComplete) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const CausalWindows windows(size(), SomeSpans());
  const at::Tensor x_nw = RandomTensor({36, kWidth}, 1), y_mw = RandomTensor({windows.count(), kWidth}, 2);
  const Windowed result = RunWindows(windows, x_nw, y_mw),
                 expected = Expected(SomeSpans(), size(), x_nw, y_mw);
  EXPECT_LT(Difference(result.mean_mw, expected.mean_mw), 1e-6);
  EXPECT_LT(Difference(result.after_sw, expected.after_sw), 1e-5);
  EXPECT_EQ(Difference(result.out_nw, expected.out_nw), 0);
}

TEST_P(CausalWindowsTest, ColumnsOfAWiderTensorAreRead) {
  const CausalWindows windows(size(), SomeSpans());
  const at::Tensor wide_nw = RandomTensor({36, 3 * kWidth}, 1),
                   y_mw = RandomTensor({windows.count(), kWidth}, 2);
  const at::Tensor columns_nw = wide_nw.narrow(1, kWidth, kWidth);
  EXPECT_TRUE(at::equal(RunWindows(windows, columns_nw, y_mw).mean_mw,
                        RunWindows(windows, columns_nw.contiguous(), y_mw).mean_mw));
}

/// The same from a scalar product: <mean(x), d> = <x, backward(d)>, as of every linear map and its transpose.
TEST_P(CausalWindowsTest, TheBackwardPassesAreTheTransposes) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const CausalWindows windows(size(), SomeSpans());
  const at::Tensor x_nw = RandomTensor({36, kWidth}, 1), y_mw = RandomTensor({windows.count(), kWidth}, 2),
                   d_mean_mw = RandomTensor({windows.count(), kWidth}, 3),
                   d_out_nw = RandomTensor({36, kWidth}, 4);
  const Windowed result = RunWindows(windows, x_nw, y_mw);
  at::Tensor d_x_nw = at::full({36, kWidth}, 99.0f), d_y_mw = at::full({windows.count(), kWidth}, 99.0f);
  WindowMeansBackward(windows, d_mean_mw, d_x_nw);
  SpreadWindowsBackward(windows, d_out_nw, d_y_mw);
  const auto product = [](const at::Tensor& a, const at::Tensor& b) {
    return a.to(at::kDouble).mul(b.to(at::kDouble)).sum().item<double>();
  };
  EXPECT_NEAR(product(result.mean_mw, d_mean_mw), product(x_nw, d_x_nw), 1e-4);
  EXPECT_NEAR(product(result.out_nw, d_out_nw), product(y_mw, d_y_mw), 1e-4);
}

/// \returns what two passes over one span of 36 rows give, of which the first has some of them
Windowed InTwoPasses(int64_t size, int64_t first_rows, const at::Tensor& x_nw, const at::Tensor& y_mw) {
  const int64_t rows = x_nw.size(0), second_rows = rows - first_rows;
  const CausalWindows first(size, SpanTable({0, static_cast<int32_t>(first_rows)})),
      second(size, SpanTable({0, static_cast<int32_t>(second_rows)}), {first_rows});
  EXPECT_EQ(first.count() + second.count(), rows / size);
  EXPECT_EQ(first.edges[0].open_rows, first_rows % size);
  EXPECT_EQ(second.edges[0].open_rows, rows % size);
  const at::Tensor y_first_mw = y_mw.narrow(0, 0, first.count()),
                   y_second_mw = y_mw.narrow(0, first.count(), second.count()),
                   seen_1w = first.count() > 0 ? y_first_mw.narrow(0, first.count() - 1, 1).contiguous()
                                               : at::zeros({1, kWidth});
  const Windowed of_first = RunWindows(first, x_nw.narrow(0, 0, first_rows), y_first_mw);
  const Windowed of_second =
      RunWindows(second, x_nw.narrow(0, first_rows, second_rows), y_second_mw, of_first.after_sw, seen_1w);
  return {.mean_mw = at::cat({of_first.mean_mw, of_second.mean_mw}),
          .after_sw = of_second.after_sw,
          .out_nw = at::cat({of_first.out_nw, of_second.out_nw})};
}

TEST_P(CausalWindowsTest, ASpanThatIsCutGoesOnAsIfItWereWholeBitForBit) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const CausalWindows windows(size(), SpanTable({0, 36}));
  const at::Tensor x_nw = RandomTensor({36, kWidth}, 1), y_mw = RandomTensor({windows.count(), kWidth}, 2);
  const Windowed whole = RunWindows(windows, x_nw, y_mw);
  for (const int64_t first_rows : {1, 2, 7, 8, 9, 24, 35}) {
    const Windowed cut = InTwoPasses(size(), first_rows, x_nw, y_mw);
    EXPECT_TRUE(at::equal(cut.mean_mw, whole.mean_mw)) << first_rows;
    EXPECT_TRUE(at::equal(cut.after_sw, whole.after_sw)) << first_rows;
    EXPECT_TRUE(at::equal(cut.out_nw, whole.out_nw)) << first_rows;
  }
}

TEST_P(CausalWindowsTest, WhatAnEarlierPassHadGetsNoGradient) {
  const CausalWindows windows(size(), SpanTable({0, 9}), {5});
  at::Tensor d_x_nw = at::full({9, kWidth}, 99.0f);
  WindowMeansBackward(windows, at::full({windows.count(), kWidth}, 1.0f), d_x_nw);
  const int64_t first = 5, end = (first + 9) / size() * size();
  for (int64_t row = 0; row < 9; ++row) {
    const double expected = first + row < end ? 1.0 / static_cast<double>(size()) : 0;
    EXPECT_NEAR(d_x_nw[row][0].item<double>(), expected, 1e-7) << row;
  }
}

TEST_P(CausalWindowsTest, SpansHaveTheBitsThatTheyHaveAlone) {
  const SpanTable spans = SomeSpans();
  const CausalWindows windows(size(), spans);
  const at::Tensor x_nw = RandomTensor({36, kWidth}, 1), y_mw = RandomTensor({windows.count(), kWidth}, 2);
  const Windowed packed = RunWindows(windows, x_nw, y_mw);
  int64_t windows_before = 0;
  for (size_t span = 0; span + 1 < spans.starts.size(); ++span) {
    const int64_t begin = spans.starts[span], length = spans.starts[span + 1] - begin;
    const CausalWindows own(size(), SpanTable({0, static_cast<int32_t>(length)}));
    const Windowed alone =
        RunWindows(own, x_nw.narrow(0, begin, length), y_mw.narrow(0, windows_before, own.count()));
    EXPECT_TRUE(at::equal(packed.mean_mw.narrow(0, windows_before, own.count()), alone.mean_mw)) << span;
    EXPECT_TRUE(at::equal(packed.out_nw.narrow(0, begin, length), alone.out_nw)) << span;
    windows_before += own.count();
  }
}

TEST_P(CausalWindowsTest, TheOperatorsOfDevicesAgree) {
  const CausalWindows windows(size(), SomeSpans(), {0, 5, 1, 3, 2});
  const at::Tensor x_nw = RandomTensor({36, kWidth}, 1), y_mw = RandomTensor({windows.count(), kWidth}, 2),
                   sums_sw = RandomTensor({5, kWidth}, 3), seen_sw = RandomTensor({5, kWidth}, 4);
  const Windowed expected = RunWindows(windows, x_nw, y_mw, sums_sw, seen_sw);
  at::Tensor mean_mw = at::empty_like(expected.mean_mw), after_sw = at::empty_like(expected.after_sw),
             out_nw = at::empty_like(expected.out_nw);
  on_device::WindowMeans(windows, x_nw, sums_sw, mean_mw, after_sw);
  on_device::SpreadWindows(windows, y_mw, seen_sw, out_nw);
  EXPECT_LT(Difference(mean_mw, expected.mean_mw), 1e-6);
  EXPECT_LT(Difference(after_sw, expected.after_sw), 1e-5);
  EXPECT_EQ(Difference(out_nw, expected.out_nw), 0);
  at::Tensor d_x_nw = at::empty_like(x_nw), d_y_mw = at::empty_like(y_mw),
             expected_x_nw = at::empty_like(x_nw), expected_y_mw = at::empty_like(y_mw);
  WindowMeansBackward(windows, y_mw, expected_x_nw);
  on_device::WindowMeansBackward(windows, y_mw, d_x_nw);
  EXPECT_LT(Difference(d_x_nw, expected_x_nw), 1e-6);
  SpreadWindowsBackward(windows, x_nw, expected_y_mw);
  on_device::SpreadWindowsBackward(windows, x_nw, d_y_mw);
  EXPECT_LT(Difference(d_y_mw, expected_y_mw), 1e-5);
}

TEST_P(CausalWindowsTest, ShortStorageIsRoundedOnce) {
  const CausalWindows windows(size(), SomeSpans());
  const at::Tensor x_nw = RandomTensor({36, kWidth}, 1).to(at::kBFloat16),
                   y_mw = RandomTensor({windows.count(), kWidth}, 2).to(at::kBFloat16);
  const Windowed stored = RunWindows(windows, x_nw, y_mw),
                 exact = RunWindows(windows, x_nw.to(at::kFloat), y_mw.to(at::kFloat));
  EXPECT_TRUE(at::equal(stored.mean_mw, exact.mean_mw.to(at::kBFloat16)));
  EXPECT_TRUE(at::equal(stored.after_sw, exact.after_sw));
  EXPECT_TRUE(at::equal(stored.out_nw, exact.out_nw.to(at::kBFloat16)));
}

TEST(CausalWindowsThreadsTest, BitsDoNotDependOnThreads) {
  const SpanTable spans({0, 700, 4096});
  const CausalWindows windows(8, spans);
  const at::Tensor x_nw = RandomTensor({4096, 64}, 1), y_mw = RandomTensor({windows.count(), 64}, 2);
  const int before = at::get_num_threads();
  std::vector<at::Tensor> results;
  for (const int threads : {1, 3}) {
    at::set_num_threads(threads);
    const Windowed forward = RunWindows(windows, x_nw, y_mw);
    at::Tensor d_y_mw = at::empty_like(y_mw);
    SpreadWindowsBackward(windows, x_nw, d_y_mw);
    results.push_back(at::cat({forward.mean_mw, forward.after_sw, forward.out_nw, d_y_mw}));
  }
  at::set_num_threads(before);
  EXPECT_TRUE(at::equal(results[0], results[1]));
}

TEST(CausalWindowsShapesTest, OnShapesAloneNothingIsRead) {
  const at::TensorOptions meta = at::TensorOptions().dtype(at::kFloat).device(at::kMeta);
  const CausalWindows windows(4, SpanTable({0, 10, 13}), {}, at::Device(at::kMeta), /*pin=*/false);
  ASSERT_EQ(windows.count(), 2);
  EXPECT_EQ(windows.spans_with_windows, std::vector<int64_t>{0});
  at::Tensor x_nw = at::empty({13, 6}, meta), y_mw = at::empty({2, 6}, meta),
             sums_sw = at::empty({2, 6}, meta);
  WindowMeans(windows, x_nw, {}, y_mw, sums_sw);
  SpreadWindows(windows, y_mw, {}, x_nw);
  SpreadWindowsBackward(windows, x_nw, y_mw);
  WindowMeansBackward(windows, y_mw, x_nw);
}

}  // namespace
}  // namespace trainwright
