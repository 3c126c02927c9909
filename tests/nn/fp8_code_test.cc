// The conversions of every instruction set to and from fp8, by the definition of the types.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/nn/cpu/kernels.h"
#include "tests/nn/instruction_sets.h"
#include "tests/support/fp8_reference.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

constexpr Fp8Format kFormats[] = {Fp8Format::kE4m3, Fp8Format::kE5m2};

std::vector<const cpu::Kernels*> AllKernels() {
  std::vector<const cpu::Kernels*> all = test::KernelsBesideBaseline();
  all.push_back(&cpu::kBaselineKernels);
  return all;
}

std::vector<uint8_t> Encoded(const cpu::Kernels& kernels, Fp8Format format, const std::vector<float>& values,
                             float factor = 1) {
  std::vector<uint8_t> codes(values.size());
  kernels.fp8_encode(cpu::Codec::kFp32, format, values.data(), factor, codes.data(), 0,
                     static_cast<int64_t>(values.size()));
  return codes;
}

/// Between each two neighbours the middle and what is next to it; beyond the largest; zeros, subnormals of
/// fp32, and values that are none.
std::vector<float> EdgesOf(Fp8Format format) {
  std::vector<float> edges = {0, 0x1p-149f, 0x1p-126f, 1e38f, INFINITY, NAN};
  for (int code = 0; code <= test::LargestFp8Code(format); ++code) {
    const bool last = code == test::LargestFp8Code(format);
    const double low = test::Fp8Value(format, code),
                 high = last ? 2 * low - test::Fp8Value(format, code - 1) : test::Fp8Value(format, code + 1);
    const auto middle = static_cast<float>((low + high) / 2);
    for (const float value : {static_cast<float>(low), middle}) {
      edges.push_back(value);
      edges.push_back(std::nextafter(value, INFINITY));
      if (value > 0) edges.push_back(std::nextafter(value, 0.0f));
    }
  }
  const size_t positive = edges.size();
  for (size_t i = 0; i < positive; ++i) edges.push_back(-edges[i]);
  return edges;
}

TEST(Fp8CodeTest, All256CodesHaveTheirValuesAndComeBack) {
  for (const cpu::Kernels* kernels : AllKernels()) {
    for (const Fp8Format format : kFormats) {
      SCOPED_TRACE(std::string(kernels->name) + (format == Fp8Format::kE4m3 ? " e4m3" : " e5m2"));
      std::vector<uint8_t> codes(256);
      for (size_t code = 0; code < 256; ++code) codes[code] = static_cast<uint8_t>(code);
      std::vector<float> values(256);
      std::vector<uint16_t> in_bf16(256);
      kernels->fp8_decode(cpu::Codec::kFp32, format, codes.data(), values.data(), 0, 256);
      kernels->fp8_decode(cpu::Codec::kBf16, format, codes.data(), in_bf16.data(), 0, 256);
      const std::vector<uint8_t> again = Encoded(*kernels, format, values);
      for (size_t code = 0; code < 256; ++code) {
        const double exact = test::Fp8Value(format, static_cast<int>(code));
        const float of_bf16 = std::bit_cast<float>(static_cast<uint32_t>(in_bf16[code]) << 16);
        if (std::isnan(exact)) {
          EXPECT_TRUE(std::isnan(values[code]) && std::isnan(of_bf16)) << code;
          EXPECT_EQ(again[code] & 0x7F, 0x7F) << code;
          continue;
        }
        EXPECT_EQ(values[code], exact) << code;
        EXPECT_EQ(std::signbit(values[code]), std::signbit(exact)) << code;
        EXPECT_EQ(of_bf16, exact) << code;
        EXPECT_EQ(again[code], std::isinf(exact) ? test::Fp8Code(format, exact) : static_cast<int>(code));
      }
    }
  }
}

TEST(Fp8CodeTest, NumbersTakeTheNearestCodeTiesToEvenAndSaturate) {
  const Rng rng(test::TestSeed(), "fp8");
  for (const Fp8Format format : kFormats) {
    std::vector<float> values = EdgesOf(format);
    for (uint64_t i = 0; i < 3000; ++i) {
      const double exponent = std::fmod(std::fabs(rng.Normal(2 * i)) * 20, 36) - 20;
      values.push_back(static_cast<float>(rng.Normal(2 * i + 1) * std::pow(2, exponent)));
    }
    for (const cpu::Kernels* kernels : AllKernels()) {
      SCOPED_TRACE(kernels->name);
      const std::vector<uint8_t> codes = Encoded(*kernels, format, values);
      for (size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(codes[i], test::Fp8Code(format, values[i])) << values[i];
      }
    }
  }
}

TEST(Fp8CodeTest, TheProductWithTheFactorIsRoundedToFp32BeforeItIsToFp8) {
  const std::vector<float> values = {1, 3.3f, -0.7f, 1e-3f, 17};
  for (const cpu::Kernels* kernels : AllKernels()) {
    for (const float factor : {26.353f, 0.00123f, NAN}) {
      const std::vector<uint8_t> codes = Encoded(*kernels, Fp8Format::kE4m3, values, factor);
      for (size_t i = 0; i < values.size(); ++i) {
        const float product = values[i] * factor;
        EXPECT_EQ(codes[i] & 0x7F, test::Fp8Code(Fp8Format::kE4m3, product) & 0x7F) << values[i];
      }
    }
  }
}

TEST(Fp8CodeTest, TheLargestBitsAreThoseOfTheLargestMagnitudeAndNansAreAboveAll) {
  for (const cpu::Kernels* kernels : AllKernels()) {
    std::vector<float> values(77, 0.5f);
    const auto largest = [&] {
      return kernels->largest_bits(cpu::Codec::kFp32, values.data(), 0, static_cast<int64_t>(values.size()));
    };
    values[61] = -3;
    EXPECT_EQ(largest(), std::bit_cast<uint32_t>(3.0f)) << kernels->name;
    values[13] = -INFINITY;
    EXPECT_EQ(largest(), 0x7F800000u) << kernels->name;
    values[70] = NAN;
    EXPECT_GT(largest(), 0x7F800000u) << kernels->name;
    EXPECT_EQ(kernels->largest_bits(cpu::Codec::kFp32, values.data(), 0, 0), 0u) << kernels->name;
    // Not rounded yet.
    const std::vector<float> rough = {1.0f, 1.005859375f};
    EXPECT_EQ(kernels->largest_bits(cpu::Codec::kRoundedBf16, rough.data(), 0, 2),
              std::bit_cast<uint32_t>(1.0078125f))
        << kernels->name;
  }
}

}  // namespace
}  // namespace trainwright
