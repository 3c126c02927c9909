// What lib/nn/cuda/cublaslt_product.cc asks of cuBLASLt, beyond the tests that every implementation of the
// seam shares: of the library of tests/support/fake_cublaslt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/nn/cuda/epilogue_product.h"
#include "tests/cuda/kernel_cases.h"
#include "tests/cuda/product_case.h"
#include "tests/cuda/seam_under_test.h"
#include "tests/support/fake_cublaslt/fake_cublaslt.h"

namespace trainwright::cuda {
namespace {

using fake_cublaslt::Algorithm;
using fake_cublaslt::Recorded;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class CublasLtProductTest : public StorageTest {
 protected:
  CublasLtProductTest() { ForgetProducts(); }
  void TearDown() override { EXPECT_EQ(fake_cublaslt::LiveDescriptors(), 0); }
  ProductCase Case(const ProductShape& shape) const { return {storage(), storage(), access(), shape}; }
};
TRAINWRIGHT_STORAGE_CASES(CublasLtProductTest);

TEST_P(CublasLtProductTest, OddSizesAndStridesAreTakenWhereThereIsNoPreActivation) {
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      const ProductShape shape = {7, 13, 11, a_transposed, b_transposed, /*gap=*/3};
      ProductCase biased = Case(shape);
      ASSERT_EQ(Multiply(biased.Product(Epilogue::kBias)), ProductStatus::kDone) << Recorded().refusal;
      biased.ExpectOut(
          [&](int64_t row, int64_t column) { return biased.Sum(row, column) + biased.bias(column); });
      ProductCase gradients(storage(), Storage::kFp32, access(), shape);
      EpilogueProduct product = gradients.Product(Epilogue::kBiasGradient);
      product.accumulate = true;
      gradients.FillOut();
      ASSERT_EQ(Multiply(product), ProductStatus::kDone) << Recorded().refusal;
      gradients.ExpectOut([&](int64_t row, int64_t column) {
        return gradients.Sum(row, column) + gradients.out_before(row, column);
      });
      gradients.ExpectBiasGradient();
    }
  }
}

TEST_P(CublasLtProductTest, PreActivationsOfRowsThatAreNoMultiplesOfEightElementsAreRefused) {
  for (const Epilogue epilogue : {Epilogue::kGelu, Epilogue::kGeluGradient}) {
    ProductCase of = Case({.columns = 16, .gap = UnseenShape().gap + 4});
    const EpilogueProduct product = of.Product(epilogue);
    EXPECT_EQ(Multiply(product), ProductStatus::kUnsupported);
    EXPECT_THAT(Recorded().refusal, HasSubstr("auxiliary matrix with the leading dimension " +
                                              std::to_string(product.out_stride)));
    of.ExpectNothingWritten();
  }
}

TEST_P(CublasLtProductTest, EachEpilogueIsTheLibrarysOwn) {
  ProductCase of = Case({}), wide_out(storage(), Storage::kFp32, access(), {});
  EXPECT_EQ(Multiply(of.Product(Epilogue::kNone)), ProductStatus::kDone);
  EXPECT_EQ(Multiply(of.Product(Epilogue::kBias)), ProductStatus::kDone);
  EpilogueProduct unbiased = of.Product(Epilogue::kGelu);
  unbiased.bias = nullptr;
  EXPECT_EQ(Multiply(unbiased), ProductStatus::kDone);
  EXPECT_EQ(Multiply(of.Product(Epilogue::kGelu)), ProductStatus::kDone);
  EXPECT_EQ(Multiply(of.Product(Epilogue::kGeluGradient)), ProductStatus::kDone);
  EXPECT_EQ(Multiply(wide_out.Product(Epilogue::kBiasGradient)), ProductStatus::kDone);
  EXPECT_THAT(Recorded().products,
              ElementsAre(Pair("bgradb", 1), Pair("bias", 1), Pair("default", 1), Pair("dgelu", 1),
                          Pair("gelu_aux", 1), Pair("gelu_aux_bias", 1)));
}

TEST_P(CublasLtProductTest, CandidatesAreTheLibrarysKernelsWhoseSumsMeetInFp32) {
  std::vector<Algorithm> algorithms;
  for (int candidate = 0; candidate < 20; ++candidate) {
    ProductCase of = Case({});
    EpilogueProduct product = of.Product(Epilogue::kBias);
    product.candidate = candidate;
    if (Multiply(product) != ProductStatus::kDone) break;
    of.ExpectOut([&](int64_t row, int64_t column) { return of.Sum(row, column) + of.bias(column); });
    algorithms.push_back(Recorded().algorithm);
  }
  if (wide()) {
    EXPECT_THAT(algorithms, ElementsAre(Algorithm::kAligned, Algorithm::kSplit, Algorithm::kSimple));
  } else {
    EXPECT_THAT(algorithms, ElementsAre(Algorithm::kSplit, Algorithm::kSimple));
  }
}

TEST_P(CublasLtProductTest, TheWorkspaceAndTheStreamAreTheCallers) {
  ProductCase of = Case({});
  int stream = 0;
  ASSERT_EQ(MultiplyWithEpilogue(of.Product(Epilogue::kNone), test::ProductWorkspace(),
                                 reinterpret_cast<cudaStream_t>(&stream)),
            ProductStatus::kDone);
  EXPECT_EQ(Recorded().workspace, test::ProductWorkspace());
  EXPECT_EQ(static_cast<int64_t>(Recorded().workspace_size), EpilogueWorkspaceBytes());
  EXPECT_EQ(Recorded().stream, &stream);
}

TEST_P(CublasLtProductTest, AnAlgorithmThatReliesOnAlignedMemoryIsNotTakenForOther) {
  const ProductShape shape = {.gap = 72};
  const auto algorithm = [&](Access where) {
    ProductCase of(storage(), storage(), where, shape);
    EXPECT_EQ(Multiply(of.Product(Epilogue::kBias)), ProductStatus::kDone) << Recorded().refusal;
    of.ExpectOut([&](int64_t row, int64_t column) { return of.Sum(row, column) + of.bias(column); });
    return Recorded().algorithm;
  };
  EXPECT_EQ(algorithm(Access::kWide), Algorithm::kAligned);
  EXPECT_EQ(algorithm(Access::kNarrow), Algorithm::kSplit);
  EXPECT_EQ(algorithm(Access::kWide), Algorithm::kAligned);
}

TEST_P(CublasLtProductTest, TheAlignmentOfEveryOperandCounts) {
  // None, and then each alone, one element off what the others are at.
  const ProductShape shape = {.gap = 8};
  ProductCase aligned(storage(), storage(), Access::kWide, shape);
  ProductCase off(storage(), storage(), Access::kNarrow, shape);
  for (int moved = -1; moved < 5; ++moved) {
    EpilogueProduct product = aligned.Product(Epilogue::kGelu);
    const EpilogueProduct other = off.Product(Epilogue::kGelu);
    if (moved == 0) product.a = other.a;
    if (moved == 1) product.b = other.b;
    if (moved == 2) product.out = other.out;
    if (moved == 3) product.bias = other.bias;
    if (moved == 4) product.pre_activation = other.pre_activation;
    EXPECT_EQ(Multiply(product), ProductStatus::kDone) << moved << ": " << Recorded().refusal;
    EXPECT_EQ(Recorded().algorithm, moved >= 0 && moved < 3 ? Algorithm::kSplit : Algorithm::kAligned)
        << moved;
  }
}

TEST_P(CublasLtProductTest, Tf32RoundsOperandsOfFp32AloneAndWhereItIsAskedFor) {
  // 1 + 2^-12 is 1 in tf32, bf16 and fp16.
  const double value = 1 + 0x1p-12;
  for (const bool tf32 : {false, true}) {
    const StoredMemory a(storage(), std::vector<double>(8, value), access()),
        b(storage(), std::vector<double>(8, 1.0), access());
    Memory<float> out(1, access());
    const EpilogueProduct product = {.rows = 1,
                                     .columns = 1,
                                     .depth = 8,
                                     .operand_type = storage(),
                                     .out_type = Storage::kFp32,
                                     .a = {a.data(), 8, false},
                                     .b = {b.data(), 8, true},
                                     .out = out.data(),
                                     .out_stride = 1,
                                     .tf32 = tf32};
    ASSERT_EQ(Multiply(product), ProductStatus::kDone) << Recorded().refusal;
    EXPECT_EQ(out[0], storage() == Storage::kFp32 && !tf32 ? 8 * value : 8);
  }
}

TEST_P(CublasLtProductTest, EachDeviceHasAHandleAndAlgorithmsOfItsOwn) {
  ProductCase of = Case(UnseenShape());
  const auto searches_on = [&](int device) {
    const int64_t before = Recorded().searches;
    fake_cublaslt::SetDevice(device);
    EXPECT_EQ(Multiply(of.Product(Epilogue::kNone)), ProductStatus::kDone) << Recorded().refusal;
    fake_cublaslt::SetDevice(0);
    return Recorded().searches - before;
  };
  EXPECT_EQ(searches_on(0), 1);
  EXPECT_EQ(searches_on(1), 1);
  EXPECT_EQ(searches_on(0), 0);
  EXPECT_EQ(searches_on(1), 0);
}

TEST(CublasLtFp8ProductTest, WhatTheLibraryHasNoKernelsForIsRefused) {
  constexpr int64_t kSize = 32;
  Memory<uint8_t> aligned(kSize * kSize, Access::kWide), off(kSize * kSize, Access::kNarrow);
  const Memory<float> scale(std::vector<float>{2.0f}, Access::kWide);
  const int64_t stride = kSize + UnseenShape().gap;
  Memory<float> out(kSize * stride, Access::kWide);
  const auto status = [&](const void* a, Fp8Format a_format, const void* b, Fp8Format b_format) {
    const EpilogueProduct product = {.rows = kSize,
                                     .columns = kSize,
                                     .depth = kSize,
                                     .a = {a, kSize, false},
                                     .b = {b, kSize, true},
                                     .out = out.data(),
                                     .out_stride = stride,
                                     .fp8 = Fp8Operands{a_format, b_format, scale.data(), scale.data()}};
    return Multiply(product);
  };
  using enum Fp8Format;
  EXPECT_EQ(status(aligned.data(), kE4m3, aligned.data(), kE4m3), ProductStatus::kDone) << Recorded().refusal;
  EXPECT_EQ(status(off.data(), kE4m3, aligned.data(), kE4m3), ProductStatus::kUnsupported);
  EXPECT_THAT(Recorded().refusal, HasSubstr("no algorithm"));
  EXPECT_EQ(status(aligned.data(), kE4m3, off.data(), kE4m3), ProductStatus::kUnsupported);
  EXPECT_EQ(status(aligned.data(), kE5m2, aligned.data(), kE5m2), ProductStatus::kUnsupported);
  EXPECT_THAT(Recorded().refusal, HasSubstr("both operands are e5m2"));
  EXPECT_EQ(fake_cublaslt::LiveDescriptors(), 0);
}

}  // namespace
}  // namespace trainwright::cuda
