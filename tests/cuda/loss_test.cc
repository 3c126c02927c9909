// Softmax cross-entropy by its formula in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/cuda/kernel_cases.h"

namespace trainwright::cuda {
namespace {

class CudaCrossEntropyTest : public StorageTest {
 protected:
  /// losses, then logits or gradients.
  std::vector<double> Run(const LossTerms& terms, double loss_scale, bool gradients) {
    return SameInEveryOrder([&] {
      StoredMemory logits(storage(), values_, access());
      const Memory<int64_t> targets(targets_, Access::kWide);
      const Memory<double> scale(std::vector<double>{loss_scale}, Access::kWide);
      Memory<double> losses(3 * kRows, Access::kWide);
      EXPECT_EQ(
          CrossEntropy(storage(), logits.data(), targets.data(), kRows, vocabulary_, padded_, terms, kScale,
                       loss_scale == 1 ? nullptr : scale.data(), gradients, losses.data(), nullptr),
          cudaSuccess);
      return AllValues(losses, logits);
    });
  }
  /// Checks what Run gave.
  void Check(const LossTerms& terms, double loss_scale) {
    const std::vector<double> result = Run(terms, loss_scale, true);
    const StoredMemory x(storage(), values_, access());
    const double z_loss = terms.z_loss, smoothing = terms.label_smoothing;
    for (int64_t row = 0; row < kRows; ++row) {
      const int64_t begin = row * padded_, target = targets_[static_cast<size_t>(row)];
      double total = 0, mean = 0;
      for (int64_t i = 0; i < vocabulary_; ++i) {
        total += std::exp(x[begin + i]);
        mean += x[begin + i] / static_cast<double>(vocabulary_);
      }
      const double log_z = std::log(total), label = x[begin + target];
      const auto* losses = result.data() + 3 * row;
      ExpectClose(losses[0], log_z - label, Storage::kFp32, 4, "loss");
      ExpectClose(losses[1], smoothing * (label - mean), Storage::kFp32, 4, "smoothing");
      ExpectClose(losses[2], z_loss * log_z * log_z, Storage::kFp32, 4, "z-loss");
      for (int64_t i = 0; i < vocabulary_; ++i) {
        const double p = std::exp(x[begin + i]) / total;
        const double gradient = p * (1 + 2 * z_loss * log_z) - smoothing / static_cast<double>(vocabulary_) -
                                (i == target ? 1 - smoothing : 0);
        ExpectClose(result[static_cast<size_t>(3 * kRows + begin + i)], kScale * loss_scale * gradient,
                    storage(), kScale * loss_scale, "gradient " + std::to_string(i));
      }
      for (int64_t i = vocabulary_; i < padded_; ++i) {
        EXPECT_EQ(result[static_cast<size_t>(3 * kRows + begin + i)], 0) << "pad " << i;
      }
    }
  }
  void SetUp() override {
    StorageTest::SetUp();
    vocabulary_ = wide() ? 4104 : 517;  // more than a pass of the block, and no multiple of it
    TakeValues(0);
  }
  /// Logits with so many pads behind each row, which are NaN.
  void TakeValues(int64_t pads) {
    padded_ = vocabulary_ + pads;
    values_ = Normals(kRows * padded_, 1);
    for (int64_t i = 0; i < kRows * padded_; ++i) {
      double& value = values_[static_cast<size_t>(i)];
      value = i % padded_ < vocabulary_ ? 3 * value : NAN;
    }
    targets_ = {0, vocabulary_ - 1};
  }

  static constexpr int64_t kRows = 2;
  static constexpr float kScale = 0.25f;
  int64_t vocabulary_ = 0, padded_ = 0;
  std::vector<double> values_;
  std::vector<int64_t> targets_;
};
TRAINWRIGHT_STORAGE_CASES(CudaCrossEntropyTest);

TEST_P(CudaCrossEntropyTest, GivesTheLossAndItsGradient) {
  Check({}, 1);
  EXPECT_THAT(cuda_emulation::LaunchCounts(),
              testing::ElementsAre(testing::Pair("CrossEntropyKernel", kRuns)));
}

TEST_P(CudaCrossEntropyTest, AddsSmoothingAndZLossAndMultipliesByTheLossScale) {
  Check({.z_loss = 0.01f, .label_smoothing = 0.1f}, 8);
}

TEST_P(CudaCrossEntropyTest, PadsCountForNothingAndHaveNoGradient) {
  // Pads that begin within a pack and fill others, in a last pass that all threads take or some.
  for (const int64_t vocabulary :
       wide() ? std::vector<int64_t>{4101, 4097, 100} : std::vector<int64_t>{514, 1}) {
    vocabulary_ = vocabulary;
    TakeValues(wide() ? (vocabulary + 31) / 16 * 16 - vocabulary : 5);
    Check({.z_loss = 0.01f, .label_smoothing = 0.1f}, 8);
  }
}

TEST_P(CudaCrossEntropyTest, OfARowWithoutALabelLossesAndGradientAreZero) {
  TakeValues(wide() ? 8 : 3);
  targets_[1] = -1;
  values_[static_cast<size_t>(padded_)] = NAN;  // of the row
  const std::vector<double> result = Run({.z_loss = 0.01f, .label_smoothing = 0.1f}, 8, true);
  EXPECT_GT(result[0], 0);
  for (size_t i = 3; i < 6; ++i) EXPECT_EQ(result[i], 0);
  for (int64_t i = 0; i < padded_; ++i)
    EXPECT_EQ(result[static_cast<size_t>(3 * kRows + padded_ + i)], 0) << i;
}

TEST_P(CudaCrossEntropyTest, LeavesTheLogitsWithoutGradients) {
  const std::vector<double> result = Run({}, 1, false);
  const std::vector<double> logits = StoredMemory(storage(), values_, access()).values();
  EXPECT_TRUE(std::equal(logits.begin(), logits.end(), result.begin() + 3 * kRows));
}

TEST_P(CudaCrossEntropyTest, TakesLogitsOfMinusInfinityAsImpossible) {
  values_.assign(static_cast<size_t>(kRows * vocabulary_), -INFINITY);
  for (int64_t row = 0; row < kRows; ++row) {
    values_[static_cast<size_t>(row * vocabulary_ + 5)] = 2;
    values_[static_cast<size_t>(row * vocabulary_ + targets_[static_cast<size_t>(row)])] = 2;
  }
  const std::vector<double> result = Run({}, 1, true);
  for (size_t row = 0; row < kRows; ++row) EXPECT_NEAR(result[3 * row], std::log(2), 1e-6);
  EXPECT_EQ(result[3 * kRows + 6], 0);
  EXPECT_NEAR(result[3 * kRows + 5], 0.5 * static_cast<double>(kScale), 1e-6);
}

TEST_P(CudaCrossEntropyTest, HidesNoNaN) {
  values_[7] = NAN;
  EXPECT_TRUE(std::isnan(Run({}, 1, false)[0]));
}

TEST_P(CudaCrossEntropyTest, OfNoRowsLaunchesNothing) {
  EXPECT_EQ(CrossEntropy(storage(), nullptr, nullptr, 0, 8, 8, {}, 1, nullptr, true, nullptr, nullptr),
            cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

/// Row numbers, then labels.
std::vector<double> Selected(const std::vector<int32_t>& labels, int64_t selected) {
  return SameInEveryOrder([&] {
    const Memory<int32_t> in(labels, Access::kWide);
    const auto rows = static_cast<int64_t>(labels.size());
    Memory<int32_t> counts(HeadRowsBlocks(rows), Access::kWide);
    Memory<int64_t> row_numbers(selected, Access::kWide), row_labels(selected, Access::kWide);
    EXPECT_EQ(
        HeadRows(in.data(), rows, selected, counts.data(), row_numbers.data(), row_labels.data(), nullptr),
        cudaSuccess);
    return AllValues(row_numbers, row_labels);
  });
}

/// Of the rows, every third and those of the second thousand have a label.
std::vector<int32_t> SomeLabels(int32_t rows) {
  std::vector<int32_t> labels;
  for (int32_t row = 0; row < rows; ++row) labels.push_back(row % 3 == 0 || row / 1000 == 1 ? 7 * row : -1);
  return labels;
}

TEST(CudaHeadRowsTest, AreThoseWithLabelsAndTheFirstOthersInOrder) {
  const std::vector<int32_t> labels = SomeLabels(2500);
  const int64_t labelled =
      std::count_if(labels.begin(), labels.end(), [](int32_t label) { return label >= 0; });
  for (const int64_t others : {0, 1, 700}) {
    std::vector<double> rows, row_labels;
    for (int64_t row = 0, left = others; row < 2500; ++row) {
      const int32_t label = labels[static_cast<size_t>(row)];
      if (label < 0 && left-- <= 0) continue;
      rows.push_back(static_cast<double>(row));
      row_labels.push_back(label);
    }
    rows.insert(rows.end(), row_labels.begin(), row_labels.end());
    EXPECT_EQ(Selected(labels, labelled + others), rows) << others;
  }
}

TEST(CudaHeadRowsTest, MoreLabelsThanRowsOverrunNothing) {
  const std::vector<double> selected = Selected(SomeLabels(2500), 10);
  EXPECT_EQ(selected[9], 27);
}

TEST(CudaHeadRowsTest, OfNothingLaunchesNothing) {
  cuda_emulation::ResetLaunchCounts();
  EXPECT_EQ(HeadRows(nullptr, 0, 0, nullptr, nullptr, nullptr, nullptr), cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

}  // namespace
}  // namespace trainwright::cuda
