#include "lib/nn/linear/thin_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "lib/base/rng.h"

namespace trainwright::cpu {
namespace {

/// Operands whose bf16 form is exact, and the product in double.
struct Operands {
  Operands(int64_t rows, int64_t depth, int64_t columns) : rows(rows), depth(depth), columns(columns) {
    Fill("a", rows * depth, &a, &a_short);
    Fill("w", columns * depth, &w, &w_short);
  }
  static void Fill(const char* stream, int64_t size, std::vector<float>* values,
                   std::vector<uint16_t>* shorts) {
    const Rng rng(7, stream);
    for (int64_t i = 0; i < size; ++i) {
      const auto value = static_cast<float>(rng.Normal(i));
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof(bits));
      bits &= 0xFFFF0000u;
      float exact;
      std::memcpy(&exact, &bits, sizeof(exact));
      values->push_back(exact);
      shorts->push_back(static_cast<uint16_t>(bits >> 16));
    }
  }
  ThinProduct Product(bool bf16, std::vector<float>* out) const {
    out->assign(rows * columns, -1);
    return {.rows = rows,
            .depth = depth,
            .bf16 = bf16,
            .a = bf16 ? static_cast<const void*>(a_short.data()) : a.data(),
            .w = bf16 ? static_cast<const void*>(w_short.data()) : w.data(),
            .a_stride = depth,
            .w_stride = depth,
            .out = out->data(),
            .out_stride = columns};
  }
  double Exact(int64_t row, int64_t column, double* magnitude) const {
    double sum = 0;
    *magnitude = 0;
    for (int64_t k = 0; k < depth; ++k) {
      const double term = static_cast<double>(a[row * depth + k]) * w[column * depth + k];
      sum += term;
      *magnitude += std::abs(term);
    }
    return sum;
  }

  int64_t rows, depth, columns;
  std::vector<float> a, w;
  std::vector<uint16_t> a_short, w_short;
};

using Compute = void (*)(const ThinProduct&, int64_t, int64_t);

TEST(ThinProductTest, EqualsTheProductInDoublePrecision) {
  for (const Compute compute : {ComputeThinProduct, ComputeThinProductForAvx2, ComputeThinProductByElement}) {
    for (const bool bf16 : {false, true}) {
      for (const int64_t depth : {1, 15, 16, 33, 64, 259}) {
        for (const int64_t rows : {1, 2, 3, 7, 8, 13, 16}) {
          const Operands operands(rows, depth, 8);
          std::vector<float> out;
          compute(operands.Product(bf16, &out), 0, 8);
          for (int64_t m = 0; m < rows; ++m) {
            for (int64_t n = 0; n < 8; ++n) {
              double magnitude;
              const double exact = operands.Exact(m, n, &magnitude);
              ASSERT_NEAR(out[m * 8 + n], exact, 1e-6 * magnitude)
                  << "row " << m << " of " << rows << ", column " << n << ", depth " << depth
                  << (bf16 ? ", bf16" : ", fp32");
            }
          }
        }
      }
    }
  }
}

TEST(ThinProductTest, ARowsBitsDependNeitherOnOtherRowsNorOnTheRange) {
  for (const Compute compute : {ComputeThinProduct, ComputeThinProductForAvx2}) {
    for (const bool bf16 : {false, true}) {
      const Operands all(kMostThinRows, 301, 37);
      std::vector<float> together;
      compute(all.Product(bf16, &together), 0, 37);
      for (int64_t row = 0; row < kMostThinRows; ++row) {
        std::vector<float> alone;
        ThinProduct product = all.Product(bf16, &alone);
        product.a = bf16 ? static_cast<const void*>(&all.a_short[row * 301]) : &all.a[row * 301];
        product.rows = 1;
        for (int64_t n = 0; n < 37; ++n) compute(product, n, n + 1);
        EXPECT_EQ(std::memcmp(alone.data(), &together[row * 37], 37 * sizeof(float)), 0) << "row " << row;
      }
    }
  }
}

TEST(ThinProductTest, AddsToWhatIsThere) {
  const Operands operands(3, 40, 5);
  std::vector<float> once, twice;
  ComputeThinProduct(operands.Product(false, &once), 0, 5);
  ThinProduct product = operands.Product(false, &twice);
  ComputeThinProduct(product, 0, 5);
  product.accumulate = true;
  ComputeThinProduct(product, 0, 5);
  for (size_t i = 0; i < once.size(); ++i) EXPECT_EQ(twice[i], 2 * once[i]) << i;
}

TEST(ThinProductTest, RoundsTheSumOnceToBf16) {
  const Operands operands(3, 40, 5);
  std::vector<float> sums;
  ThinProduct product = operands.Product(true, &sums);
  ComputeThinProduct(product, 0, 5);
  std::vector<uint16_t> rounded(sums.size());
  product.out = rounded.data();
  product.out_bf16 = true;
  ComputeThinProduct(product, 0, 5);
  for (size_t i = 0; i < sums.size(); ++i) {
    const uint32_t bits = static_cast<uint32_t>(rounded[i]) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    EXPECT_LE(std::abs(value - sums[i]), std::abs(sums[i]) / 256) << i;
  }
}

}  // namespace
}  // namespace trainwright::cpu
