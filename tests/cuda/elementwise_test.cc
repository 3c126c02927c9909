// Rounding, rotary positions and the gated activation, by their formulas in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/cuda/kernel_cases.h"

namespace trainwright::cuda {
namespace {

using testing::ElementsAre;
using testing::Pair;

class CudaRoundTest : public StorageTest {};
TRAINWRIGHT_STORAGE_CASES(CudaRoundTest);

/// The element of a short type with bits `bits`, by its definition.
double Decoded(int bits, int exponent_bits, int fraction_bits) {
  const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1), bias = (1 << (exponent_bits - 1)) - 1;
  return exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                       : std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

TEST_P(CudaRoundTest, TakesTheNearestStoredValueAndTiesToEven) {
  const int64_t size = Width(4096);
  const std::vector<double> values = Normals(size, 1);
  const auto all = SameInEveryOrder([&] {
    const Memory<float> in = Floats(values, access());
    StoredMemory out(storage(), size, access());
    EXPECT_EQ(Round(storage(), in.data(), out.data(), size, nullptr), cudaSuccess);
    return AllValues(out);
  });
  const int fraction_bits = storage() == Storage::kBf16 ? 7 : storage() == Storage::kFp16 ? 10 : 23;
  for (int64_t i = 0; i < size; ++i) {
    const double value = values[static_cast<size_t>(i)];
    const int least = storage() == Storage::kFp16 ? -24 : -149;
    const double unit = std::ldexp(1.0, std::max(std::ilogb(value) - fraction_bits, least));
    // nearbyint rounds ties to even
    EXPECT_EQ(all[static_cast<size_t>(i)], std::nearbyint(value / unit) * unit) << value;
  }
  EXPECT_THAT(cuda_emulation::LaunchCounts(), ElementsAre(Pair("RoundKernel", kRuns)));
}

TEST_P(CudaRoundTest, OfNothingLaunchesNothing) {
  EXPECT_EQ(Round(storage(), nullptr, nullptr, 0, nullptr), cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

/// Checks a conversion at every finite value of a short type: itself, what is just below and above the middle
/// to the next, and the middle.
void CheckConversion(int exponent_bits, int fraction_bits, double infinite_from,
                     const std::function<uint16_t(float)>& to_short,
                     const std::function<float(uint16_t)>& to_float) {
  const int infinity = ((1 << exponent_bits) - 1) << fraction_bits;
  for (int bits = 0; bits < infinity; ++bits) {
    const double value = Decoded(bits, exponent_bits, fraction_bits);
    const double next =
        bits + 1 == infinity ? infinite_from * 2 - value : Decoded(bits + 1, exponent_bits, fraction_bits);
    const auto middle = static_cast<float>((value + next) / 2);
    const int even = bits % 2 == 0 ? bits : bits + 1;
    for (const int sign : {0, 1}) {
      const int above = sign << 15;
      const float factor = sign == 0 ? 1.0f : -1.0f;
      ASSERT_EQ(to_float(static_cast<uint16_t>(above | bits)), factor * static_cast<float>(value));
      ASSERT_EQ(to_short(factor * static_cast<float>(value)), above | bits);
      ASSERT_EQ(to_short(factor * middle), above | even);
      ASSERT_EQ(to_short(factor * std::nextafter(middle, 0.0f)), above | bits);
      ASSERT_EQ(to_short(factor * std::nextafter(middle, INFINITY)), above | (bits + 1));
    }
  }
  ASSERT_EQ(to_short(INFINITY), infinity);
  ASSERT_EQ(to_short(-INFINITY), 0x8000 | infinity);
  ASSERT_EQ(to_short(NAN), 0x7FFF);
  ASSERT_TRUE(std::isnan(to_float(0x7FFF)));
  ASSERT_EQ(to_float(static_cast<uint16_t>(infinity)), INFINITY);
  ASSERT_EQ(std::bit_cast<uint32_t>(to_float(0x8000)), 0x80000000u);
}

TEST(CudaEmulationTypesTest, Bf16RoundsToNearestEvenAtEveryValue) {
  CheckConversion(
      8, 7, 0x1.FFp127, [](float x) { return __float2bfloat16_rn(x).bits; },
      [](uint16_t bits) { return __bfloat162float({bits}); });
}

TEST(CudaEmulationTypesTest, HalfRoundsToNearestEvenAtEveryValue) {
  CheckConversion(
      5, 10, 65520, [](float x) { return __float2half_rn(x).bits; },
      [](uint16_t bits) { return __half2float({bits}); });
}

class CudaRopeTest : public StorageTest {};
TRAINWRIGHT_STORAGE_CASES(CudaRopeTest);

TEST_P(CudaRopeTest, TurnsTheFirstElementsOfTheFirstHeads) {
  const int64_t rows = 5, heads = 3, half = Width(16), head_dim = wide() ? 40 : 27, row_width = 4 * head_dim;
  const std::vector<double> values = Normals(rows * row_width, 2), angles = Normals(7 * half, 3);
  std::vector<double> cosines, sines;
  for (const double angle : angles) {
    cosines.push_back(static_cast<float>(std::cos(angle)));
    sines.push_back(static_cast<float>(std::sin(angle)));
  }
  const std::vector<int64_t> position = {3, 0, 6, 1, 1};
  const StoredMemory before(storage(), values, access());
  for (const float sign : {1.0f, -1.0f}) {
    const auto after = SameInEveryOrder([&] {
      StoredMemory qkv(storage(), values, access());
      const Memory<float> cosine = Floats(cosines, access()), sine = Floats(sines, access());
      const Memory<int64_t> positions(position, Access::kWide);
      EXPECT_EQ(Rope(storage(), qkv.data(), positions.data(), cosine.data(), sine.data(), rows, row_width,
                     heads, head_dim, half, sign, nullptr),
                cudaSuccess);
      return AllValues(qkv);
    });
    for (int64_t i = 0; i < rows * row_width; ++i) {
      const int64_t row = i / row_width, head = i % row_width / head_dim, k = i % head_dim;
      double exact = before[i];
      if (head < heads && k < 2 * half) {
        const auto angle = static_cast<size_t>(position[static_cast<size_t>(row)] * half + k % half);
        const double cosine = cosines[angle], sine = sign * sines[angle];
        exact = k < half ? before[i] * cosine - before[i + half] * sine
                         : before[i] * cosine + before[i - half] * sine;
      }
      ExpectClose(after[static_cast<size_t>(i)], exact, storage(), 1, "element " + std::to_string(i));
    }
  }
}

TEST_P(CudaRopeTest, OfNoRowsLaunchesNothing) {
  EXPECT_EQ(Rope(storage(), nullptr, nullptr, nullptr, nullptr, 0, 8, 1, 8, 4, 1, nullptr), cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

class CudaJoinHeadsTest : public StorageTest {};
TRAINWRIGHT_STORAGE_CASES(CudaJoinHeadsTest);

TEST_P(CudaJoinHeadsTest, PutsThemSideBySideAndTurnsQueriesAndKeysBack) {
  const int64_t rows = 3, head_dim = wide() ? 40 : 27, q_heads = 2, kv_heads = 1, width = 4 * head_dim;
  for (const int64_t half : {int64_t{0}, Width(16)}) {
    const StoredMemory q(storage(), Normals(rows * q_heads * head_dim, 2), access()),
        k(storage(), Normals(rows * head_dim, 3), access()),
        v(storage(), Normals(rows * head_dim, 4), access());
    const std::vector<double> angles = Normals(5 * half, 5);
    std::vector<double> cosines, sines;
    for (const double angle : angles) {
      cosines.push_back(static_cast<float>(std::cos(angle)));
      sines.push_back(static_cast<float>(std::sin(angle)));
    }
    const std::vector<int64_t> position = {4, 0, 2};
    const auto joined = SameInEveryOrder([&] {
      StoredMemory qkv(storage(), rows * width, access());
      const Memory<float> cosine = Floats(cosines, access()), sine = Floats(sines, access());
      const Memory<int64_t> positions(position, Access::kWide);
      // Query heads lie one after the other, each with all of its rows.
      EXPECT_EQ(JoinHeads(storage(), {q.data(), head_dim, rows * head_dim}, {k.data(), head_dim, head_dim},
                          {v.data(), head_dim, head_dim}, rows, q_heads, kv_heads, head_dim, positions.data(),
                          cosine.data(), sine.data(), half, qkv.data(), nullptr),
                cudaSuccess);
      return AllValues(qkv);
    });
    for (int64_t i = 0; i < rows * width; ++i) {
      const int64_t row = i / width, head = i % width / head_dim, element = i % head_dim;
      const auto at = [&](int64_t e) {
        if (head < q_heads) return q[(head * rows + row) * head_dim + e];
        return head == q_heads ? k[row * head_dim + e] : v[row * head_dim + e];
      };
      double exact = at(element);
      if (head <= q_heads && element < 2 * half) {
        const auto angle = static_cast<size_t>(position[static_cast<size_t>(row)] * half + element % half);
        exact = element < half ? at(element) * cosines[angle] + at(element + half) * sines[angle]
                               : at(element) * cosines[angle] - at(element - half) * sines[angle];
      }
      ExpectClose(joined[static_cast<size_t>(i)], exact, storage(), 1, "element " + std::to_string(i));
    }
  }
}

TEST_P(CudaJoinHeadsTest, OfNoRowsLaunchesNothing) {
  EXPECT_EQ(JoinHeads(storage(), {}, {}, {}, 0, 2, 1, 8, nullptr, nullptr, nullptr, 0, nullptr, nullptr),
            cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

double Sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

class CudaSwigluTest : public StorageTest {};
TRAINWRIGHT_STORAGE_CASES(CudaSwigluTest);

TEST_P(CudaSwigluTest, IsSiluOfTheGateTimesTheRest) {
  const int64_t rows = 7, width = Width(48);
  const std::vector<double> values = Normals(rows * 2 * width, 4);
  const StoredMemory in(storage(), values, access());
  const auto out = SameInEveryOrder([&] {
    StoredMemory result(storage(), rows * width, access());
    EXPECT_EQ(Swiglu(storage(), in.data(), rows, width, result.data(), nullptr), cudaSuccess);
    return AllValues(result);
  });
  for (int64_t i = 0; i < rows * width; ++i) {
    const int64_t gate = i / width * 2 * width + i % width;
    ExpectClose(out[static_cast<size_t>(i)], in[gate] * Sigmoid(in[gate]) * in[gate + width], storage(), 1,
                "element " + std::to_string(i));
  }
}

TEST_P(CudaSwigluTest, OfNothingLaunchesNothing) {
  EXPECT_EQ(Swiglu(storage(), nullptr, 0, 8, nullptr, nullptr), cudaSuccess);
  EXPECT_EQ(Swiglu(storage(), nullptr, 3, 0, nullptr, nullptr), cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

class CudaSwigluBackwardTest : public StorageTest {};
TRAINWRIGHT_STORAGE_CASES(CudaSwigluBackwardTest);

TEST_P(CudaSwigluBackwardTest, IsTheDerivativeByGateAndRest) {
  const int64_t rows = 6, width = Width(56);
  const std::vector<double> values = Normals(rows * 2 * width, 5);
  const StoredMemory in(storage(), values, access()), d(storage(), Normals(rows * width, 6), access());
  const auto gradients = SameInEveryOrder([&] {
    StoredMemory gate_up(storage(), values, access());
    EXPECT_EQ(SwigluBackward(storage(), gate_up.data(), d.data(), rows, width, nullptr), cudaSuccess);
    return AllValues(gate_up);
  });
  for (int64_t i = 0; i < rows * width; ++i) {
    const int64_t gate = i / width * 2 * width + i % width;
    const double g = in[gate], u = in[gate + width], s = Sigmoid(g);
    ExpectClose(gradients[static_cast<size_t>(gate)], d[i] * u * s * (1 + g * (1 - s)), storage(), 4,
                "gate " + std::to_string(i));
    ExpectClose(gradients[static_cast<size_t>(gate + width)], d[i] * g * s, storage(), 4,
                "up " + std::to_string(i));
  }
}

TEST_P(CudaSwigluBackwardTest, OfNothingLaunchesNothing) {
  EXPECT_EQ(SwigluBackward(storage(), nullptr, nullptr, 0, 8, nullptr), cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

}  // namespace
}  // namespace trainwright::cuda
