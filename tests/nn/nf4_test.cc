// NF4 against a slow reading of its definition, and against what bitsandbytes computed (make_nf4_fixture.py).
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "lib/nn/linear/linear.h"
#include "lib/nn/linear/nf4.h"
#include "lib/nn/linear/nf4_block.h"
#include "lib/nn/parameters/flat_parameters.h"
#include "tests/nn/reference.h"

namespace trainwright {
namespace {

using test::RandomTensor;

at::Tensor RoundTrip(const at::Tensor& values) {
  Nf4Tensor nf4(values.numel(), at::Device(at::kCPU));
  nf4.Quantize(values);
  at::Tensor out = at::empty(values.sizes(), at::kFloat);
  nf4.Dequantize(test::kFp32, out);
  return out;
}

/// The value of a book that is nearest.
double NearestOf(std::span<const float> book, double value) {
  double best = book[0];
  for (const float candidate : book) {
    if (std::fabs(candidate - value) < std::fabs(best - value)) best = candidate;
  }
  return best;
}

/// Double quantisation in double precision by search through the books.
std::vector<double> SlowRoundTrip(const at::Tensor& values) {
  const float* data = values.const_data_ptr<float>();
  const auto size = static_cast<size_t>(values.numel());
  std::vector<double> magnitudes;
  for (size_t begin = 0; begin < size; begin += 64) {
    double largest = 0;
    for (size_t i = begin; i < std::min(size, begin + 64); ++i)
      largest = std::max(largest, std::fabs(double{data[i]}));
    magnitudes.push_back(largest);
  }
  double mean = 0;
  for (const double magnitude : magnitudes) mean += magnitude / static_cast<double>(magnitudes.size());
  std::vector<double> read(magnitudes.size());
  for (size_t begin = 0; begin < magnitudes.size(); begin += 256) {
    const size_t end = std::min(magnitudes.size(), begin + 256);
    double largest = 0;
    for (size_t i = begin; i < end; ++i) largest = std::max(largest, std::fabs(magnitudes[i] - mean));
    for (size_t i = begin; i < end; ++i) {
      read[i] =
          (largest == 0 ? 0 : NearestOf(DynamicMap(), (magnitudes[i] - mean) / largest) * largest) + mean;
    }
  }
  std::vector<double> out(size);
  for (size_t i = 0; i < size; ++i) {
    const double magnitude = magnitudes[i / 64];
    out[i] = magnitude == 0 ? 0 : NearestOf(Nf4CodeBook(), data[i] / magnitude) * read[i / 64];
  }
  return out;
}

TEST(Nf4Test, RoundTripIsThatOfTheDefinition) {
  // One block, many with a last one that is not full, and more than 256 blocks.
  for (const int64_t size : {1, 64, 65, 1000, 64 * 300 + 17}) {
    const at::Tensor values = RandomTensor({size}, static_cast<uint64_t>(size));
    const at::Tensor read = RoundTrip(values);
    const std::vector<double> expected = SlowRoundTrip(values);
    for (int64_t i = 0; i < size; ++i) {
      const double want = expected[static_cast<size_t>(i)];
      ASSERT_NEAR(read[i].item<double>(), want, 1e-6 * (1 + std::fabs(want)))
          << "element " << i << " of " << size;
    }
  }
}

TEST(Nf4Test, ZerosAndOutliersSurvive) {
  EXPECT_TRUE(RoundTrip(at::full({128}, 0.0f)).eq(0).all().item<bool>());
  at::Tensor values = at::full({64}, 0.0f);
  values[63] = -1e30f;
  const at::Tensor read = RoundTrip(values);
  EXPECT_NEAR(read[63].item<double>() / -1e30, 1.0, 1e-6);
  EXPECT_TRUE(read.narrow(0, 0, 63).eq(0).all().item<bool>());
}

TEST(Nf4Test, AnElementThatIsNotFiniteIsNeverReadAsANumber) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    at::Tensor values = RandomTensor({200}, 1).to(at::kFloat);
    values[70] = bad;
    EXPECT_TRUE(RoundTrip(values)[70].isnan().item<bool>());
  }
}

TEST(Nf4Test, EveryInstructionSetReadsTheSameBits) {
  const Rng rng(test::TestSeed(), "codes");
  uint8_t codes[32];
  for (uint64_t trial = 0; trial < 100; ++trial) {
    for (uint64_t i = 0; i < 32; ++i) codes[i] = static_cast<uint8_t>(rng.Bits(32 * trial + i));
    const auto magnitude = static_cast<float>(rng.Normal(trial));
    float best[64], plain[64];
    cpu::DequantizeNf4Block(codes, 64, Nf4CodeBook().data(), magnitude, best);
    cpu::DequantizeNf4BlockByElement(codes, 64, Nf4CodeBook().data(), magnitude, plain);
    ASSERT_EQ(std::memcmp(best, plain, sizeof(best)), 0);
  }
}

TEST(Nf4Test, ShortTypesAreTheFp32ValuesRounded) {
  const at::Tensor values = RandomTensor({3000}, 5);
  Nf4Tensor nf4(3000, at::Device(at::kCPU));
  nf4.Quantize(values);
  at::Tensor exact = at::empty({3000}), bf16 = at::empty({3000}, at::kBFloat16), emulated = at::empty({3000});
  nf4.Dequantize(test::kFp32, exact);
  nf4.Dequantize({Precision::kBf16, at::kBFloat16}, bf16);
  nf4.Dequantize({Precision::kBf16, at::kFloat}, emulated);
  EXPECT_TRUE(at::equal(bf16, exact.to(at::kBFloat16)));
  EXPECT_TRUE(at::equal(emulated, exact.to(at::kBFloat16).to(at::kFloat)));
}

TEST(Nf4Test, TakesAnEighthOfFp32) {
  const int64_t size = 1024 * 1024;
  EXPECT_EQ(Nf4Tensor(size, at::Device(at::kCPU)).bytes(), size / 2 + size / 64 + 4 * (size / 64 / 256) + 4);
}

TEST(Nf4Test, AgreesWithBitsandbytes) {
  std::ifstream file(test::Fixture("nn/fixtures/nf4.json"));
  const nlohmann::json fixture = nlohmann::json::parse(file);
  const auto map = fixture.at("dynamic_map").get<std::vector<float>>();
  ASSERT_EQ(map.size(), 256u);
  for (size_t i = 0; i < 256; ++i) EXPECT_FLOAT_EQ(DynamicMap()[i], map[i]) << i;
  const auto book = fixture.at("code_book").get<std::vector<float>>();
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(Nf4CodeBook()[i], book.at(i)) << i;
  ASSERT_GE(fixture.at("cases").size(), 3u);
  for (const nlohmann::json& c : fixture.at("cases")) {
    const auto values = c.at("values").get<std::vector<float>>(),
               expected = c.at("dequantized").get<std::vector<float>>();
    at::Tensor input = at::empty({static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), input.mutable_data_ptr<float>());
    const at::Tensor read = RoundTrip(input);
    for (size_t i = 0; i < values.size(); ++i) {
      // Its mean of the magnitudes is summed in another order.
      ASSERT_NEAR(read[static_cast<int64_t>(i)].item<double>(), expected[i],
                  1e-6 * (1e-3 + std::fabs(expected[i])))
          << i;
    }
  }
}

TEST(QuantizedLinearTest, IsTheLinearOfTheDequantizedWeights) {
  for (const Numerics& numerics : {test::kFp32, Numerics{Precision::kBf16, at::kBFloat16}}) {
    FlatParameters quantized, plain;
    for (size_t i = 0; i < 2; ++i) {
      quantized.Quantize(quantized.Add("w" + std::to_string(i), {32, 48}, true), WeightFormat::kNf4);
      plain.Freeze(plain.Add("w" + std::to_string(i), {32, 48}, true));
    }
    quantized.Allocate(numerics, at::Device(at::kCPU));
    plain.Allocate(numerics, at::Device(at::kCPU));
    for (size_t i = 0; i < 2; ++i) {
      const at::Tensor weight = RandomTensor({32, 48}, i);
      quantized.Assign(i, weight);
      plain.Assign(i, RoundTrip(weight));
    }
    const at::Tensor x = RandomTensor({9, 48}, 5).to(numerics.storage),
                     dy = RandomTensor({9, 64}, 6).to(numerics.storage);
    at::Tensor y = at::empty({9, 64}, numerics.storage), d_x = at::empty({9, 48}, numerics.storage),
               y_plain = y.clone(), d_x_plain = d_x.clone();
    Linear(&quantized, {0, 1}).Forward(x, y);
    Linear(&quantized, {0, 1}).Backward(dy, x, d_x);
    Linear(&plain, {0, 1}).Forward(x, y_plain);
    Linear(&plain, {0, 1}).Backward(dy, x, d_x_plain);
    EXPECT_TRUE(at::equal(y, y_plain) && at::equal(d_x, d_x_plain));
    EXPECT_EQ(quantized.frozen_bytes(), 2 * Nf4Tensor(32 * 48, at::Device(at::kCPU)).bytes());
    EXPECT_EQ(quantized.scratch_bytes(),
              2 * 32 * 48 * static_cast<int64_t>(at::elementSize(numerics.storage)));
  }
}

}  // namespace
}  // namespace trainwright
