// Dropout and the reading of NF4, by their definitions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/rng.h"
#include "lib/nn/linear/nf4_books.h"
#include "tests/cuda/kernel_cases.h"

namespace trainwright::cuda {
namespace {

using testing::ElementsAre;
using testing::Pair;

class CudaDropoutTest : public StorageTest {};
TRAINWRIGHT_STORAGE_CASES(CudaDropoutTest);

TEST_P(CudaDropoutTest, DropsElementsByTheBitsOfTheirRowsNumberAndColumn) {
  const Rng rng(test::TestSeed(), "dropout");
  constexpr int64_t kRows = 70;
  constexpr uint32_t kThreshold = 0x60000000u;
  const int64_t width = Width(24), pairs = (width + 1) / 2;
  const std::vector<double> values = Normals(kRows * width, 1);
  const auto all = SameInEveryOrder([&] {
    const StoredMemory x(storage(), values, access());
    Memory<int64_t> numbers(kRows, Access::kWide);
    for (int64_t row = 0; row < kRows; ++row) numbers[row] = 7 + (row << 26);
    StoredMemory out(storage(), kRows * width, access());
    EXPECT_EQ(Dropout(storage(), x.data(), numbers.data(), rng.key(), kThreshold, 1.6f, kRows, width,
                      out.data(), nullptr),
              cudaSuccess);
    return AllValues(out);
  });
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t column = 0; column < width; ++column) {
      const auto i = static_cast<size_t>(row * width + column);
      const uint64_t bits = rng.Bits(static_cast<uint64_t>((7 + (row << 26)) * pairs + column / 2));
      const auto half = static_cast<uint32_t>(column % 2 == 0 ? bits : bits >> 32);
      const auto x = static_cast<float>(Rounded(storage(), static_cast<float>(values[i])));
      EXPECT_EQ(all[i], half < kThreshold ? 0 : Rounded(storage(), x * 1.6f)) << row << ' ' << column;
    }
  }
  EXPECT_THAT(cuda_emulation::LaunchCounts(),
              ElementsAre(Pair(access() == Access::kWide ? "PairedDropoutKernel" : "DropoutKernel", kRuns)));
}

class CudaDequantizeNf4Test : public StorageTest {};
TRAINWRIGHT_STORAGE_CASES(CudaDequantizeNf4Test);

TEST_P(CudaDequantizeNf4Test, ReadsTheBitsOfTheDefinition) {
  const Rng rng(test::TestSeed(), "codes");
  // More than one block of scales; the narrow case ends within a byte.
  const int64_t size = access() == Access::kWide ? 64 * 300 : 64 * 300 + 43,
                blocks = (size + kNf4Block - 1) / kNf4Block,
                magnitudes = (blocks + kNf4ScaleBlock - 1) / kNf4ScaleBlock;
  Memory<uint8_t> codes((size + 1) / 2, access()), scales(blocks, access());
  for (int64_t i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<uint8_t>(rng.Bits(static_cast<uint64_t>(i)));
  for (int64_t i = 0; i < blocks; ++i)
    scales[i] = static_cast<uint8_t>(rng.Bits(1u << 20 | static_cast<uint64_t>(i)));
  const Memory<float> scale_magnitudes = Floats(Normals(magnitudes, 2), access()),
                      mean = Floats(Normals(1, 3), access());
  const auto all = SameInEveryOrder([&] {
    StoredMemory out(storage(), size, access());
    EXPECT_EQ(DequantizeNf4(storage(), codes.data(), scales.data(), scale_magnitudes.data(), mean.data(),
                            BothNf4Books(), size, out.data(), nullptr),
              cudaSuccess);
    return AllValues(out);
  });
  for (int64_t i = 0; i < size; ++i) {
    const int64_t block = i / kNf4Block;
    // Volatile: each step is rounded to fp32.
    volatile float magnitude = DynamicMap()[scales[block]] * scale_magnitudes[block / kNf4ScaleBlock];
    magnitude = magnitude + mean[0];
    const int code = i % 2 == 0 ? codes[i / 2] >> 4 : codes[i / 2] & 15;
    ASSERT_EQ(all[static_cast<size_t>(i)],
              Rounded(storage(), Nf4CodeBook()[static_cast<size_t>(code)] * magnitude))
        << i;
  }
  EXPECT_THAT(cuda_emulation::LaunchCounts(), ElementsAre(Pair("DequantizeNf4Kernel", kRuns)));
}

}  // namespace
}  // namespace trainwright::cuda
