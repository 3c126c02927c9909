#include "lib/codec/symbol_counts.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "tests/support/support.h"

namespace trainwright::codec {
namespace {

/// Symbols of falling frequency, each half as frequent as the one before, as exponents of weights have it.
std::vector<uint8_t> Halving(size_t n, std::mt19937_64* random) {
  std::vector<uint8_t> symbols(n);
  for (uint8_t& symbol : symbols) symbol = static_cast<uint8_t>(120 - std::countl_zero((*random)() | 1));
  return symbols;
}

SymbolCounts Counted(const std::vector<uint8_t>& symbols) {
  SymbolCounts counts{};
  for (const uint8_t symbol : symbols) ++counts[symbol];
  return counts;
}

TEST(SymbolCounts, OfASampleSayExactlyWhichBytesOccur) {
  SCOPED_TRACE(test::TestSeed());
  std::mt19937_64 random(test::TestSeed());
  for (const size_t n : {1, 4096, 32'767, 32'768, 100'001}) {
    std::vector<uint8_t> symbols = Halving(n, &random);
    symbols[random() % n] = 255;  // once: hardly any sample has it
    symbols.back() = 3;
    const SymbolCounts exact = Counted(symbols);
    for (const size_t one_in : {1, 4, 8}) {
      const SymbolCounts counts = CountSymbols(BestKernels(), symbols, one_in);
      for (size_t s = 0; s < 256; ++s)
        ASSERT_EQ(counts[s] != 0, exact[s] != 0) << s << " of " << n << ", one in " << one_in;
    }
  }
}

TEST(SymbolCounts, OfASampleAreNearTheCounts) {
  SCOPED_TRACE(test::TestSeed());
  std::mt19937_64 random(test::TestSeed());
  const std::vector<uint8_t> symbols = Halving(1 << 18, &random);
  const SymbolCounts exact = Counted(symbols), counts = CountSymbols(BestKernels(), symbols, 4);
  for (size_t s = 0; s < 256; ++s) {
    // Seven standard deviations of the count in a quarter of them, four times that.
    const double bound = 4 * 7 * std::sqrt(exact[s] / 4.0) + 4;
    EXPECT_NEAR(counts[s], exact[s], bound) << s;
  }
}

TEST(SymbolCounts, FollowNoPeriodOfTheData) {
  // Rows of any length whose first half has one symbol and whose second half has another.
  for (size_t row = 128; row <= 8192; row *= 2) {
    std::vector<uint8_t> symbols(1 << 18);
    for (size_t i = 0; i < symbols.size(); ++i) symbols[i] = i % row < row / 2 ? 7 : 8;
    const SymbolCounts counts = CountSymbols(BestKernels(), symbols, 4);
    EXPECT_NEAR(counts[7], 1 << 17, 1 << 13) << "rows of " << row;
    EXPECT_EQ(counts[7] + counts[8], symbols.size());
  }
}

TEST(SymbolCounts, AreThoseOfAllWhereThePieceIsSmall) {
  SCOPED_TRACE(test::TestSeed());
  std::mt19937_64 random(test::TestSeed());
  const std::vector<uint8_t> symbols = Halving(16'383, &random);
  EXPECT_EQ(CountSymbols(BestKernels(), symbols, 4), Counted(symbols));
  EXPECT_FALSE(CountsSample(symbols.size(), 4));
  EXPECT_TRUE(CountsSample(symbols.size() + 1, 4));
}

TEST(SymbolCounts, AreTheSameOnEveryInstructionSet) {
  SCOPED_TRACE(test::TestSeed());
  std::mt19937_64 random(test::TestSeed());
  const std::vector<uint8_t> symbols = Halving(70'001, &random);
  const SymbolCounts plain = CountSymbols(kBaselineKernels, symbols, 4);
  for (const Kernels* kernels : SupportedKernels()) EXPECT_EQ(CountSymbols(*kernels, symbols, 4), plain);
}

}  // namespace
}  // namespace trainwright::codec
