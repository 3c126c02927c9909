// Look-up of rows, and the embedding's gradient, by their definitions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/cuda/kernel_cases.h"

namespace trainwright::cuda {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr int64_t kVocabulary = 11;

class EmbeddingTest : public testing::TestWithParam<Access> {
 protected:
  void SetUp() override { cuda_emulation::ResetLaunchCounts(); }
  int64_t width() const { return GetParam() == Access::kWide ? 520 : 131; }
};

std::string AccessName(const testing::TestParamInfo<Access>& info) {
  return info.param == Access::kWide ? "wide" : "narrow";
}

class CudaEmbeddingBackwardTest : public EmbeddingTest {
 protected:
  /// The table of gradients after the rows of `d_x` were added to `before`.
  std::vector<double> After(const std::vector<int64_t>& tokens, const std::vector<double>& d_x,
                            const std::vector<double>& before) {
    const auto rows = static_cast<int64_t>(tokens.size());
    std::vector<int64_t> sorted_rows(tokens.size()), sorted_tokens;
    std::iota(sorted_rows.begin(), sorted_rows.end(), 0);
    std::stable_sort(sorted_rows.begin(), sorted_rows.end(), [&](int64_t a, int64_t b) {
      return tokens[static_cast<size_t>(a)] < tokens[static_cast<size_t>(b)];
    });
    for (const int64_t row : sorted_rows) sorted_tokens.push_back(tokens[static_cast<size_t>(row)]);
    return SameInEveryOrder([&] {
      const Memory<float> gradients = Floats(d_x, GetParam());
      const Memory<int64_t> by_token(sorted_tokens, Access::kWide), of_rows(sorted_rows, Access::kWide);
      Memory<float> table = Floats(before, GetParam()),
                    partial(EmbeddingStretches(rows) * width(), GetParam());
      EXPECT_EQ(EmbeddingBackward(Storage::kFp32, gradients.data(), by_token.data(), of_rows.data(), rows,
                                  width(), table.data(), partial.data(), nullptr),
                cudaSuccess);
      return AllValues(table);
    });
  }
  /// Against sums in double.
  void Check(const std::vector<int64_t>& tokens) {
    const auto rows = static_cast<int64_t>(tokens.size());
    const std::vector<double> d_x = Normals(rows * width(), 1), before = Normals(kVocabulary * width(), 2);
    std::vector<double> exact = before;
    for (int64_t i = 0; i < rows * width(); ++i) {
      exact[static_cast<size_t>(tokens[static_cast<size_t>(i / width())] * width() + i % width())] +=
          d_x[static_cast<size_t>(i)];
    }
    const std::vector<double> after = After(tokens, d_x, before);
    for (size_t i = 0; i < exact.size(); ++i) {
      ExpectClose(after[i], exact[i], Storage::kFp32, 16, "element " + std::to_string(i));
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Every, CudaEmbeddingBackwardTest, testing::Values(Access::kWide, Access::kNarrow),
                         AccessName);

TEST_P(CudaEmbeddingBackwardTest, AddsTheRowsOfEachTokenInTheirOrder) {
  const std::vector<int64_t> tokens = {3, 10, 3, 0, 3, 10, 7, 3, 0};
  const auto rows = static_cast<int64_t>(tokens.size());
  const std::vector<double> d_x = Normals(rows * width(), 1), before = Normals(kVocabulary * width(), 2);
  std::vector<float> exact(before.begin(), before.end());  // sums of fp32 in row order: the same bits
  for (int64_t i = 0; i < rows * width(); ++i) {
    exact[static_cast<size_t>(tokens[static_cast<size_t>(i / width())] * width() + i % width())] +=
        static_cast<float>(d_x[static_cast<size_t>(i)]);
  }
  EXPECT_EQ(After(tokens, d_x, before), std::vector<double>(exact.begin(), exact.end()));
  EXPECT_THAT(cuda_emulation::LaunchCounts(), ElementsAre(Pair("EmbeddingStretchKernel", kRuns)));
}

TEST_P(CudaEmbeddingBackwardTest, ATokenThatFillsEveryRowIsSummedByAllBlocks) {
  constexpr int64_t kRows = 10 * kEmbeddingStretchRows + 7;
  Check(std::vector<int64_t>(kRows, 4));
  EXPECT_THAT(cuda_emulation::LaunchCounts(),
              ElementsAre(Pair("AddStretchesKernel", kRuns), Pair("EmbeddingStretchKernel", kRuns)));
}

TEST_P(CudaEmbeddingBackwardTest, TokensMayBeginAndEndAnywhereInStretches) {
  // Of each token so many rows, that runs end before, at and behind the ends of stretches.
  constexpr int64_t kStretch = kEmbeddingStretchRows;
  const std::vector<int64_t> counts = {
      kStretch, kStretch + 1, kStretch - 1, 1, 3 * kStretch - 1, kStretch / 2, 0, 1, 2 * kStretch,
      5,        kStretch + 3};
  std::vector<int64_t> tokens;
  for (int64_t turn = 0; turn < 3 * kStretch; ++turn) {
    for (int64_t token = 0; token < kVocabulary; ++token) {
      if (turn < counts[static_cast<size_t>(token)]) tokens.push_back(token);
    }
  }
  Check(tokens);
}

TEST_P(CudaEmbeddingBackwardTest, OfNoRowsLaunchesNothing) {
  EXPECT_EQ(EmbeddingBackward(Storage::kFp32, nullptr, nullptr, nullptr, 0, 8, nullptr, nullptr, nullptr),
            cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

class CudaAddEmbeddingTest : public EmbeddingTest {};
INSTANTIATE_TEST_SUITE_P(Every, CudaAddEmbeddingTest, testing::Values(Access::kWide, Access::kNarrow),
                         AccessName);

TEST_P(CudaAddEmbeddingTest, AddsTheRowsOfTheIndices) {
  const std::vector<int64_t> indices = {3, 10, 3, 0, 9};
  const auto rows = static_cast<int64_t>(indices.size());
  const std::vector<double> tables = Normals(kVocabulary * width(), 1), before = Normals(rows * width(), 2);
  const auto after = SameInEveryOrder([&] {
    const Memory<float> table = Floats(tables, GetParam());
    const Memory<int64_t> of_rows(indices, Access::kWide);
    Memory<float> out = Floats(before, GetParam());
    EXPECT_EQ(AddEmbedding(Storage::kFp32, table.data(), of_rows.data(), rows, width(), out.data(), nullptr),
              cudaSuccess);
    return AllValues(out);
  });
  for (int64_t i = 0; i < rows * width(); ++i) {
    const int64_t from = indices[static_cast<size_t>(i / width())] * width() + i % width();
    EXPECT_EQ(after[static_cast<size_t>(i)],
              static_cast<float>(before[static_cast<size_t>(i)] + tables[static_cast<size_t>(from)]));
  }
}

TEST_P(CudaAddEmbeddingTest, OfNoRowsLaunchesNothing) {
  EXPECT_EQ(AddEmbedding(Storage::kFp32, nullptr, nullptr, 0, 8, nullptr, nullptr), cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

}  // namespace
}  // namespace trainwright::cuda
