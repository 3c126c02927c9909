// Every instruction set computes what the plain loops compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "lib/base/checksum.h"
#include "lib/codec/cpu/kernels.h"
#include "tests/codec/fixtures.h"
#include "tests/support/support.h"

namespace trainwright::codec {

/// What gtest prints of a parameter.
void PrintTo(const Kernels* kernels, std::ostream* out) {
  *out << kernels->name;
}

namespace {

std::vector<uint8_t> RandomBytes(size_t size, std::mt19937_64* random) {
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>((*random)());
  return bytes;
}

class KernelsTest : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels() const { return *GetParam(); }
  std::mt19937_64 random_{test::TestSeed()};
};

TEST_P(KernelsTest, PlanesAreThoseOfTheManPage) {
  for (const ElementType type : test::kAllTypes) {
    const size_t width = ElementBytes(type);
    for (const size_t n : {0, 1, 31, 64, 1000}) {
      const std::vector<uint8_t> elements = RandomBytes(n * width, &random_);
      std::vector<std::vector<uint8_t>> planes(width, std::vector<uint8_t>(n));
      std::array<uint8_t*, kMaxPlanes> pointers{};
      for (size_t p = 0; p < width; ++p) pointers[p] = planes[p].data();
      kernels().split(type, elements.data(), n, pointers.data());
      for (size_t i = 0; i < n; ++i) {
        // The bits of element i, most significant first; the sign moved behind the first eight others.
        std::string bits;
        for (size_t bit = 8 * width; bit-- > 0;)
          bits += elements[i * width + bit / 8] >> bit % 8 & 1 ? '1' : '0';
        if (IsFloat(type)) std::rotate(bits.begin(), bits.begin() + 1, bits.begin() + 9);
        for (size_t p = 0; p < width; ++p)
          ASSERT_EQ(planes[p][i], std::stoi(bits.substr(8 * p, 8), nullptr, 2)) << i << " plane " << p;
      }
      std::vector<uint8_t> merged(n * width);
      kernels().merge(type, pointers.data(), n, merged.data());
      ASSERT_EQ(merged, elements);
    }
  }
}

TEST_P(KernelsTest, HistogramsCount) {
  for (const size_t n : {0, 1, 7, 8, 65, 5000}) {
    const std::vector<uint8_t> bytes = RandomBytes(n, &random_);
    std::array<uint32_t, 256> counts;
    kernels().histogram(bytes.data(), n, counts.data());
    for (int s = 0; s < 256; ++s)
      ASSERT_EQ(counts[s], static_cast<uint32_t>(std::count(bytes.begin(), bytes.end(), s)));
  }
  for (const uint32_t n : {(1u << 18) - 1, 1u << 18, 1u << 20}) {
    std::array<uint32_t, 256> counts, expected{};
    expected[9] = n;
    kernels().histogram(std::vector<uint8_t>(n, 9).data(), n, counts.data());
    ASSERT_EQ(counts, expected) << n << " of one value";
  }
}

TEST_P(KernelsTest, BytesThatOccurAreMarkedPresentAndNoOthers) {
  SCOPED_TRACE(test::TestSeed());
  for (const size_t n : {0, 1, 31, 32, 63, 64, 65, 1000, 40'000}) {
    for (const int values : {1, 2, 20, 256}) {
      const auto first = static_cast<int>(random_() % 256);
      std::vector<uint8_t> bytes = RandomBytes(n, &random_);
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(first + byte % values);
      std::array<uint8_t, 256> present{}, expected;
      for (int already = 0; already < 3; ++already) present[random_() % 256] = 1;
      expected = present;
      for (const uint8_t byte : bytes) expected[byte] = 1;
      kernels().mark_present(bytes.data(), n, present.data());
      ASSERT_EQ(present, expected) << n << " bytes of " << values << " values from " << first;
    }
  }
}

TEST_P(KernelsTest, HashesAreThoseOfTheLibrary) {
  for (const size_t n : {0, 1, 3, 8, 16, 17, 128, 129, 240, 241, 1024, 1025, 70'000}) {
    const std::vector<uint8_t> bytes = RandomBytes(n, &random_);
    for (const uint64_t seed : {uint64_t{0}, random_()})
      EXPECT_EQ(kernels().hash(bytes.data(), n, seed), Xxh3(bytes, seed)) << n;
  }
}

/// Symbols of an alphabet, the low ones more often.
std::vector<uint8_t> Skewed(size_t n, int alphabet, std::mt19937_64* random) {
  std::vector<uint8_t> symbols(n);
  for (uint8_t& symbol : symbols) {
    const double u = static_cast<double>((*random)() >> 11) * 0x1p-53;
    symbol = static_cast<uint8_t>(37 + 3 * static_cast<int>(u * u * u * alphabet));
  }
  return symbols;
}

TEST_P(KernelsTest, RansIsTheSameOnEverySetAndComesBack) {
  SCOPED_TRACE(test::TestSeed());
  for (const int alphabet : {2, 3, 40, 64, 65, 85, 256}) {
    for (const size_t groups : {1, 2, 3, 100}) {
      SCOPED_TRACE(testing::Message() << alphabet << " symbols, " << groups << " groups");
      const std::vector<uint8_t> symbols = Skewed(groups * kRansLanes, alphabet, &random_);
      std::array<uint32_t, 256> counts{};
      for (const uint8_t symbol : symbols) ++counts[symbol];
      const RansFrequencies frequencies = NormalizeCounts(counts.data());
      RansEncodeTable table;
      BuildEncodeTable(frequencies, &table);
      const auto encode = [&](const Kernels& with, std::array<uint32_t, kRansLanes>* states) {
        states->fill(kRansLow);
        std::vector<uint8_t> room(2 * symbols.size() + 64);
        uint8_t* end = room.data() + room.size();
        uint8_t* begin = with.rans_encode(symbols.data(), groups, table, states->data(), end);
        return std::vector<uint8_t>(begin, end);
      };
      std::array<uint32_t, kRansLanes> states, plain_states;
      const std::vector<uint8_t> words = encode(kernels(), &states);
      ASSERT_EQ(words, encode(kBaselineKernels, &plain_states));
      ASSERT_EQ(states, plain_states);

      RansDecodeTable decode_table;
      BuildDecodeTable(frequencies, kernels().decodes_by_slot, &decode_table);
      std::vector<uint8_t> decoded(symbols.size());
      const uint8_t* next = words.data();
      ASSERT_TRUE(kernels().rans_decode(&next, words.data() + words.size(), groups, decode_table,
                                        states.data(), decoded.data()));
      EXPECT_EQ(decoded, symbols);
      EXPECT_EQ(next, words.data() + words.size());
      EXPECT_TRUE(std::all_of(states.begin(), states.end(), [](uint32_t x) { return x == kRansLow; }));
    }
  }
}

TEST_P(KernelsTest, RansStopsWhereTheWordsStop) {
  const size_t groups = 40;
  const std::vector<uint8_t> symbols = Skewed(groups * kRansLanes, 40, &random_);
  std::array<uint32_t, 256> counts{};
  for (const uint8_t symbol : symbols) ++counts[symbol];
  const RansFrequencies frequencies = NormalizeCounts(counts.data());
  RansDecodeTable table;
  BuildDecodeTable(frequencies, kernels().decodes_by_slot, &table);
  for (size_t words = 0; words < 200; ++words) {
    // In memory of just that size, so that sanitizers see a read behind it.
    std::vector<uint8_t> bytes = RandomBytes(2 * words, &random_);
    bytes.shrink_to_fit();
    std::array<uint32_t, kRansLanes> states;
    states.fill(kRansLow);
    std::vector<uint8_t> decoded(symbols.size());
    const uint8_t* next = bytes.data();
    EXPECT_FALSE(kernels().rans_decode(&next, bytes.data() + bytes.size(), groups, table, states.data(),
                                       decoded.data()));
  }
}

TEST_P(KernelsTest, PredictionsAreThoseOfTheManPage) {
  std::vector<int16_t> columns(256 + 17);
  for (int16_t& column : columns) column = static_cast<int16_t>(static_cast<int>(random_() % 256) - 124);
  for (const int row : {-128, -1, 0, 77, 127}) {
    std::vector<uint8_t> exponents(columns.size());
    for (size_t i = 0; i < exponents.size(); ++i) exponents[i] = static_cast<uint8_t>(i);
    std::vector<uint8_t> codes = exponents;
    kernels().predict(codes.data(), columns.data(), static_cast<int16_t>(row), codes.size());
    for (size_t i = 0; i < codes.size(); ++i) {
      const int sum = row + columns[i];
      const int p = (sum >= 0 ? sum / 8 : -((7 - sum) / 8)) & 255, c = codes[i];
      const int exponent = c == 0 ? 0 : ((c + p) & 255) == 0 ? p : (c + p) & 255;
      ASSERT_EQ(exponent, exponents[i]);
    }
    kernels().unpredict(codes.data(), columns.data(), static_cast<int16_t>(row), codes.size());
    EXPECT_EQ(codes, exponents);
  }
}

TEST_P(KernelsTest, DifferencesComeBackAndSmallOnesAreSmall) {
  for (const size_t width : {1, 2, 4, 8}) {
    const std::vector<uint8_t> x = RandomBytes(100 * width, &random_);
    const std::vector<uint8_t> base = RandomBytes(100 * width, &random_);
    std::vector<uint8_t> difference(x.size()), back(x.size());
    kernels().subtract(width, x.data(), base.data(), 100, difference.data());
    kernels().add(width, difference.data(), base.data(), 100, back.data());
    EXPECT_EQ(back, x);
    for (const int d : {-3, -1, 0, 1, 2}) {
      uint64_t a = 40, b = static_cast<uint64_t>(40 + d), z = 0;
      kernels().subtract(width, reinterpret_cast<uint8_t*>(&b), reinterpret_cast<uint8_t*>(&a), 1,
                         reinterpret_cast<uint8_t*>(&z));
      EXPECT_EQ(z, static_cast<uint64_t>(d < 0 ? -2 * d - 1 : 2 * d));
    }
  }
}

TEST_P(KernelsTest, ExponentsAreTheFirstPlaneAndAddUp) {
  for (const ElementType type : {ElementType::kFloat16, ElementType::kFloat32, ElementType::kFloat64}) {
    const size_t width = ElementBytes(type), n = 333;
    const std::vector<uint8_t> elements = test::MakeTensor(type, test::Content::kSpecial, n, 1, &random_);
    std::vector<std::vector<uint8_t>> planes(width, std::vector<uint8_t>(n));
    std::array<uint8_t*, kMaxPlanes> pointers{};
    for (size_t p = 0; p < width; ++p) pointers[p] = planes[p].data();
    kernels().split(type, elements.data(), n, pointers.data());
    std::vector<uint8_t> exponents(n);
    kernels().exponents(type, elements.data(), n, exponents.data());
    EXPECT_EQ(exponents, planes[0]);
    std::vector<uint16_t> sums(n), zeros(n);
    EXPECT_EQ(kernels().add_exponents(exponents.data(), n, sums.data(), zeros.data()).sum,
              std::accumulate(exponents.begin(), exponents.end(), uint64_t{0}));
  }
}

TEST_P(KernelsTest, ExponentsOfRowsAreAddedByColumn) {
  SCOPED_TRACE(test::TestSeed());
  for (const size_t n : {1, 7, 8, 1000, 1024, 1025, 3000}) {
    for (const bool largest : {false, true}) {
      std::vector<uint16_t> sums(n), zeros(n);
      std::vector<uint64_t> expected_sums(n), expected_zeros(n);
      for (uint64_t row = 0; row < kMostAddedRows; ++row) {
        std::vector<uint8_t> exponents = largest ? std::vector<uint8_t>(n, 255) : RandomBytes(n, &random_);
        const ExponentSum sum = kernels().add_exponents(exponents.data(), n, sums.data(), zeros.data());
        uint64_t total = 0, nonzero = 0;
        for (size_t i = 0; i < n; ++i) {
          const uint64_t zero = exponents[i] == 0 ? 1 : 0;
          total += exponents[i];
          nonzero += 1 - zero;
          expected_sums[i] += exponents[i];
          expected_zeros[i] += zero;
        }
        ASSERT_EQ(sum.sum, total);
        ASSERT_EQ(sum.count, nonzero);
      }
      EXPECT_EQ(std::vector<uint64_t>(sums.begin(), sums.end()), expected_sums);
      EXPECT_EQ(std::vector<uint64_t>(zeros.begin(), zeros.end()), expected_zeros);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, KernelsTest,
                         testing::ValuesIn(SupportedKernels().begin(), SupportedKernels().end()),
                         [](const auto& info) { return info.param->name; });

}  // namespace
}  // namespace trainwright::codec
