// Norms and embeddings with a residual stream of the stored type: each of its sums is made in fp32 and
// rounded once. By formulas in double on what was rounded, and by the kernels with a stream of fp32.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lib/nn/cuda/layer_norm_kernels.h"
#include "tests/cuda/kernel_cases.h"

namespace trainwright::cuda {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr float kStreamEpsilon = 1e-5f;
// One, two and four packs of a thread, and more than it holds.
constexpr int64_t kStreamWidths[] = {264, 1100, 2100, 4100};

class CudaStreamTest : public testing::TestWithParam<std::tuple<Storage, Access>> {
 protected:
  void SetUp() override { cuda_emulation::ResetLaunchCounts(); }
  Storage storage() const { return std::get<0>(GetParam()); }
  Access access() const { return std::get<1>(GetParam()); }
  NormStorage both() const { return {storage(), storage()}; }
  int64_t Width(int64_t width) const { return access() == Access::kWide ? width : width - 3; }
  StoredMemory Stored(int64_t count, uint64_t stream) const {
    return {storage(), Normals(count, stream), access()};
  }
  double RoundedSum(double a, double b) const { return Rounded(storage(), static_cast<float>(a + b)); }
};

INSTANTIATE_TEST_SUITE_P(Every, CudaStreamTest,
                         testing::Combine(testing::Values(Storage::kBf16, Storage::kFp16),
                                          testing::Values(Access::kWide, Access::kNarrow)),
                         CaseName);

/// Of a row, by its definition.
struct Moments {
  double mean = 0, square = 0, variance = 0;
};
Moments MomentsOf(const std::vector<double>& x, int64_t row, int64_t width) {
  Moments moments;
  const auto value = [&](int64_t i) { return x[static_cast<size_t>(row * width + i)]; };
  const auto count = static_cast<double>(width);
  for (int64_t i = 0; i < width; ++i) {
    moments.mean += value(i) / count;
    moments.square += value(i) * value(i) / count;
  }
  for (int64_t i = 0; i < width; ++i) moments.variance += std::pow(value(i) - moments.mean, 2) / count;
  return moments;
}
double ReciprocalRoot(double square) {
  return 1 / std::sqrt(square + static_cast<double>(kStreamEpsilon));
}

TEST_P(CudaStreamTest, RmsNormIsThatOfTheRoundedSumAndAgainTheSameBits) {
  const int64_t rows = 3;
  for (const int64_t of : kStreamWidths) {
    const int64_t width = Width(of), size = rows * width;
    SCOPED_TRACE("width " + std::to_string(width));
    const StoredMemory residual = Stored(size, 1), update = Stored(size, 2);
    const std::vector<double> weights = Normals(width, 3);
    const auto all = SameInEveryOrder([&] {
      const Memory<float> weight = Floats(weights, access());
      StoredMemory sum(storage(), size, access()), normed(storage(), size, access()),
          again(storage(), size, access());
      Memory<float> rstd(rows, access());
      EXPECT_EQ(AddNorm(both(), residual.data(), update.data(), weight.data(), kStreamEpsilon, rows, width,
                        sum.data(), normed.data(), rstd.data(), nullptr),
                cudaSuccess);
      EXPECT_EQ(NormAgain(both(), sum.data(), rstd.data(), weight.data(), rows, width, again.data(), nullptr),
                cudaSuccess);
      EXPECT_EQ(again.values(), normed.values());
      return AllValues(sum, normed, rstd);
    });
    const std::vector<double> sums(all.begin(), all.begin() + size);
    for (int64_t i = 0; i < size; ++i) {
      const auto at = static_cast<size_t>(i);
      ASSERT_EQ(sums[at], RoundedSum(residual[i], update[i])) << i;
      const double rstd = ReciprocalRoot(MomentsOf(sums, i / width, width).square);
      ExpectClose(all[static_cast<size_t>(2 * size + i / width)], rstd, Storage::kFp32, 1, "rstd");
      ExpectClose(all[static_cast<size_t>(size) + at], sums[at] * rstd * weights[at % weights.size()],
                  storage(), 4, "normed " + std::to_string(i));
      if (i % width > 8) i += width / 7;  // moments of a row are slow to take for each of its elements
    }
  }
}

TEST_P(CudaStreamTest, LayerNormIsThatOfTheRoundedSumAndAgainTheSameBits) {
  const int64_t rows = 3;
  for (const int64_t of : kStreamWidths) {
    const int64_t width = Width(of), size = rows * width;
    SCOPED_TRACE("width " + std::to_string(width));
    const StoredMemory residual = Stored(size, 1), update = Stored(size, 2);
    const std::vector<double> weights = Normals(width, 3), biases = Normals(width, 4),
                              update_biases = Normals(width, 5);
    const auto all = SameInEveryOrder([&] {
      const Memory<float> weight = Floats(weights, access()), bias = Floats(biases, access()),
                          update_bias = Floats(update_biases, access());
      StoredMemory sum(storage(), size, access()), normed(storage(), size, access()),
          again(storage(), size, access());
      Memory<float> mean(rows, access()), rstd(rows, access());
      const LayerNormInput norm = {rows, width, weight.data(), bias.data()};
      EXPECT_EQ(AddLayerNorm(both(), norm, residual.data(), update.data(), update_bias.data(), kStreamEpsilon,
                             sum.data(), normed.data(), mean.data(), rstd.data(), nullptr),
                cudaSuccess);
      EXPECT_EQ(LayerNormAgain(both(), norm, sum.data(), mean.data(), rstd.data(), again.data(), nullptr),
                cudaSuccess);
      EXPECT_EQ(again.values(), normed.values());
      return AllValues(sum, normed, mean, rstd);
    });
    const std::vector<double> sums(all.begin(), all.begin() + size);
    for (int64_t i = 0; i < size; ++i) {
      const auto at = static_cast<size_t>(i), column = at % weights.size(),
                 row = static_cast<size_t>(2 * size + i / width);
      ASSERT_EQ(sums[at], RoundedSum(residual[i], static_cast<float>(update[i] + update_biases[column])));
      const Moments exact = MomentsOf(sums, i / width, width);
      const double rstd = ReciprocalRoot(exact.variance);
      ExpectClose(all[row], exact.mean, Storage::kFp32, 1, "mean");
      ExpectClose(all[row + static_cast<size_t>(rows)], rstd, Storage::kFp32, 1, "rstd");
      ExpectClose(all[static_cast<size_t>(size) + at],
                  (sums[at] - exact.mean) * rstd * weights[column] + biases[column], storage(), 8,
                  "normed " + std::to_string(i));
      if (i % width > 8) i += width / 7;
    }
  }
}

TEST_P(CudaStreamTest, GradientsAreThoseOfAStreamInFp32RoundedOnce) {
  const int64_t rows = 19;  // three strips of rows, the last one short
  for (const int64_t of : kStreamWidths) {
    const int64_t width = Width(of), size = rows * width;
    SCOPED_TRACE("width " + std::to_string(width));
    const StoredMemory dy = Stored(size, 1), x = Stored(size, 2), before = Stored(size, 3);
    const std::vector<double> weights = Normals(width, 4), statistics = Normals(2 * rows, 5);
    const Memory<float> weight = Floats(weights, access()), statistic = Floats(statistics, Access::kWide),
                        long_x = Floats(x.values(), access());
    const float *mean = statistic.data(), *rstd = mean + rows;
    const auto run = [&](NormStorage types, const void* inputs, auto* d_rms, auto* d_layer) {
      Memory<float> sums(3 * width, Access::kWide),
          partial(LayerNormBackwardStrips(rows) * 2 * width, access());
      for (int64_t i = 0; i < 3 * width; ++i) sums[i] = 0;
      EXPECT_EQ(NormBackward(types, dy.data(), inputs, rstd, weight.data(), rows, width, d_rms->data(),
                             nullptr, sums.data(), partial.data(), nullptr),
                cudaSuccess);
      EXPECT_EQ(LayerNormBackward(
                    types, {rows, width, weight.data(), nullptr}, dy.data(), inputs, mean, rstd,
                    {d_layer->data(), nullptr, sums.data() + width, sums.data() + 2 * width, partial.data()},
                    nullptr),
                cudaSuccess);
      return AllValues(*d_rms, *d_layer, sums);
    };
    Memory<float> long_rms = Floats(before.values(), access()),
                  long_layer = Floats(before.values(), access());
    std::vector<double> expected = run(storage(), long_x.data(), &long_rms, &long_layer);
    for (int64_t i = 0; i < 2 * size; ++i) {
      auto& value = expected[static_cast<size_t>(i)];
      value = Rounded(storage(), static_cast<float>(value));
    }
    EXPECT_EQ(SameInEveryOrder([&] {
                StoredMemory d_rms = Stored(size, 3), d_layer = Stored(size, 3);
                return run(both(), x.data(), &d_rms, &d_layer);
              }),
              expected);
  }
}

TEST_P(CudaStreamTest, AnotherShortTypeThanTheStoredOneIsRefused) {
  const Storage other = storage() == Storage::kBf16 ? Storage::kFp16 : Storage::kBf16;
  EXPECT_EQ(AddNorm({storage(), other}, nullptr, nullptr, nullptr, kStreamEpsilon, 1, 8, nullptr, nullptr,
                    nullptr, nullptr),
            cudaErrorInvalidValue);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

constexpr int64_t kVocabulary = 11;

class CudaEmbedTest : public CudaStreamTest {};
INSTANTIATE_TEST_SUITE_P(Every, CudaEmbedTest, kStorageCases, CaseName);

TEST_P(CudaEmbedTest, RoundsTheRowsOfTheIndicesAndAddsThemInFp32) {
  const std::vector<int64_t> indices = {3, 10, 3, 0, 9};
  const auto rows = static_cast<int64_t>(indices.size());
  const int64_t width = Width(520);
  const std::vector<double> tables = Normals(kVocabulary * width, 1);
  const auto after = SameInEveryOrder([&] {
    const Memory<float> table = Floats(tables, access());
    const Memory<int64_t> of_rows(indices, Access::kWide);
    StoredMemory out(storage(), rows * width, access());
    EXPECT_EQ(Embed(storage(), table.data(), of_rows.data(), rows, width, out.data(), nullptr), cudaSuccess);
    const std::vector<double> embedded = out.values();
    EXPECT_EQ(AddEmbedding(storage(), table.data(), of_rows.data(), rows, width, out.data(), nullptr),
              cudaSuccess);
    std::vector<double> all = AllValues(out);
    all.insert(all.end(), embedded.begin(), embedded.end());
    return all;
  });
  for (int64_t i = 0; i < rows * width; ++i) {
    const int64_t from = indices[static_cast<size_t>(i / width)] * width + i % width;
    const double value = tables[static_cast<size_t>(from)],
                 embedded = Rounded(storage(), static_cast<float>(value));
    ASSERT_EQ(after[static_cast<size_t>(rows * width + i)], embedded) << i;
    ASSERT_EQ(after[static_cast<size_t>(i)], RoundedSum(embedded, value)) << i;
  }
  EXPECT_THAT(cuda_emulation::LaunchCounts(),
              ElementsAre(Pair("AddEmbeddingKernel", kRuns), Pair("EmbedKernel", kRuns)));
}

TEST_P(CudaEmbedTest, TheGradientOfTheTableSumsStoredRowsInTheirOrder) {
  const std::vector<int64_t> sorted_tokens = {0, 0, 3, 3, 3, 7}, sorted_rows = {1, 4, 0, 2, 5, 3};
  const auto rows = static_cast<int64_t>(sorted_rows.size());
  const int64_t width = Width(520);
  const StoredMemory d_x = Stored(rows * width, 1);
  const auto after = SameInEveryOrder([&] {
    const Memory<int64_t> tokens(sorted_tokens, Access::kWide), of_rows(sorted_rows, Access::kWide);
    Memory<float> table = Floats(std::vector<double>(static_cast<size_t>(kVocabulary * width)), access()),
                  partial(EmbeddingStretches(rows) * width, access());
    EXPECT_EQ(EmbeddingBackward(storage(), d_x.data(), tokens.data(), of_rows.data(), rows, width,
                                table.data(), partial.data(), nullptr),
              cudaSuccess);
    return AllValues(table);
  });
  std::vector<float> exact(static_cast<size_t>(kVocabulary * width));
  for (size_t item = 0; item < sorted_rows.size(); ++item) {
    for (int64_t i = 0; i < width; ++i) {
      exact[static_cast<size_t>(sorted_tokens[item] * width + i)] +=
          static_cast<float>(d_x[sorted_rows[item] * width + i]);
    }
  }
  EXPECT_EQ(after, std::vector<double>(exact.begin(), exact.end()));
}

TEST_P(CudaEmbedTest, OfNoRowsLaunchesNothing) {
  EXPECT_EQ(Embed(storage(), nullptr, nullptr, 0, 8, nullptr, nullptr), cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

}  // namespace
}  // namespace trainwright::cuda
