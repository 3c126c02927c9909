// Every implementation of the seam towards cuBLASLt: products of fp8 codes, by the definition of the types in
// double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lib/nn/cuda/epilogue_product.h"
#include "tests/cuda/cuda_memory.h"
#include "tests/cuda/seam_under_test.h"
#include "tests/support/fp8_reference.h"

namespace trainwright::cuda {
namespace {

using testing::ElementsAre;
using testing::Pair;

class Fp8ProductTest : public testing::Test {
 protected:
  static constexpr int64_t kProductRows = 5, kColumns = 32, kDepth = 48;
  Fp8ProductTest() : a_(kProductRows * kDepth, Access::kWide), b_(kColumns * kDepth, Access::kWide) {
    ForgetProducts();
    for (int64_t i = 0; i < a_.size(); ++i) a_[i] = static_cast<uint8_t>(i * 11 % 0x70);
    for (int64_t i = 0; i < b_.size(); ++i) b_[i] = static_cast<uint8_t>(0x80 + i * 7 % 0x60);
  }
  EpilogueProduct Product(Memory<float>* out) {
    return {.rows = kProductRows,
            .columns = kColumns,
            .depth = kDepth,
            .a = {a_.data(), kDepth, false},
            .b = {b_.data(), kDepth, true},
            .out = out == nullptr ? nullptr : out->data(),
            .out_stride = kColumns,
            .fp8 = Fp8Operands{Fp8Format::kE5m2, Fp8Format::kE4m3, a_scale_.data(), b_scale_.data()}};
  }
  /// Of the codes' values, and of their magnitudes.
  std::pair<double, double> Sum(Fp8Format a_format, Fp8Format b_format, int64_t row, int64_t column) const {
    double sum = 0, terms = 0;
    for (int64_t k = 0; k < kDepth; ++k) {
      const double term =
          test::Fp8Value(a_format, a_[row * kDepth + k]) * test::Fp8Value(b_format, b_[column * kDepth + k]);
      sum += term;
      terms += std::fabs(term);
    }
    return {sum, terms};
  }
  Memory<uint8_t> a_, b_;
  const Memory<float> a_scale_ = {std::vector<float>{0.25f}, Access::kWide},
                      b_scale_ = {std::vector<float>{3.0f}, Access::kWide};
};

TEST_F(Fp8ProductTest, IsTheScaledSumOfTheCodesValuesAndMayBeAdded) {
  for (const bool accumulate : {false, true}) {
    Memory<float> out(std::vector<float>(kProductRows * kColumns, 2), Access::kWide);
    EpilogueProduct product = Product(&out);
    product.accumulate = accumulate;
    ASSERT_EQ(Multiply(product), ProductStatus::kDone);
    for (int64_t i = 0; i < out.size(); ++i) {
      const auto [sum, terms] = Sum(Fp8Format::kE5m2, Fp8Format::kE4m3, i / kColumns, i % kColumns);
      EXPECT_NEAR(out[i], 0.75 * sum + (accumulate ? 2 : 0), 1e-6 * terms + 1e-6) << i;
    }
  }
  EXPECT_THAT(CountedProducts(), ElementsAre(Pair("fp8", 2)));
}

TEST_F(Fp8ProductTest, OperandsMayBeOfEitherFormatAndResultsOfEveryType) {
  constexpr int64_t kStride = kColumns + 16;
  const Memory<float> small_scale(std::vector<float>{0x1p-12f},
                                  Access::kWide);  // so that fp16 holds the results
  const std::pair<Fp8Format, Fp8Format> formats[] = {{Fp8Format::kE4m3, Fp8Format::kE4m3},
                                                     {Fp8Format::kE4m3, Fp8Format::kE5m2},
                                                     {Fp8Format::kE5m2, Fp8Format::kE4m3}};
  for (const auto& [a_format, b_format] : formats) {
    for (const Storage out_type : {Storage::kFp32, Storage::kBf16, Storage::kFp16}) {
      StoredMemory out(out_type, kProductRows * kStride, Access::kWide);
      EpilogueProduct product = Product(nullptr);
      product.fp8 = Fp8Operands{a_format, b_format, small_scale.data(), b_scale_.data()};
      product.out_type = out_type;
      product.out = out.data();
      product.out_stride = kStride;
      ASSERT_EQ(Multiply(product), ProductStatus::kDone);
      for (int64_t i = 0; i < out.size(); ++i) {
        const int64_t row = i / kStride, column = i % kStride;
        if (column >= kColumns) {
          EXPECT_TRUE(std::isnan(out[i])) << i;
          continue;
        }
        const auto [sum, terms] = Sum(a_format, b_format, row, column);
        ExpectClose(out[i], sum * 3 * 0x1p-12, out_type, terms * 3 * 0x1p-12, std::to_string(i));
      }
    }
  }
}

TEST_F(Fp8ProductTest, LayoutsThatTheLibraryHasNoKernelsForAreRefused) {
  Memory<float> out(kProductRows * kColumns, Access::kWide);
  const auto status = [&](auto change) {
    EpilogueProduct product = Product(&out);
    change(&product);
    return Multiply(product);
  };
  EXPECT_EQ(status([](EpilogueProduct* p) { p->a.transposed = true; }), ProductStatus::kUnsupported);
  EXPECT_EQ(status([](EpilogueProduct* p) { p->b.transposed = false; }), ProductStatus::kUnsupported);
  EXPECT_EQ(status([](EpilogueProduct* p) { p->depth = 40; }), ProductStatus::kUnsupported);
  EXPECT_EQ(status([](EpilogueProduct* p) { p->columns = 24; }), ProductStatus::kUnsupported);
}

}  // namespace
}  // namespace trainwright::cuda
