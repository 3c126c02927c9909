// Every implementation of the seam towards cuBLASLt, each epilogue against its formula in double: the host's
// loops, which stand for that library wherever there is no GPU, and the calls of that library.
#include "lib/nn/cuda/epilogue_product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/cuda/kernel_cases.h"
#include "tests/cuda/product_case.h"
#include "tests/cuda/seam_under_test.h"

namespace trainwright::cuda {
namespace {

using testing::ElementsAre;
using testing::Pair;

class EpilogueProductTest : public StorageTest {
 protected:
  EpilogueProductTest() { ForgetProducts(); }
  ProductCase Case(const ProductShape& shape = {}) const { return Case(storage(), shape); }
  ProductCase Case(Storage out_type, const ProductShape& shape) const {
    return {storage(), out_type, access(), shape};
  }
};
TRAINWRIGHT_STORAGE_CASES(EpilogueProductTest);

/// Both operands each way.
std::vector<ProductShape> Transpositions(ProductShape shape) {
  std::vector<ProductShape> shapes;
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      shape.a_transposed = a_transposed;
      shape.b_transposed = b_transposed;
      shapes.push_back(shape);
    }
  }
  return shapes;
}

TEST_P(EpilogueProductTest, EitherOperandMayBeTransposedAndTheBiasIsAdded) {
  for (const ProductShape& shape : Transpositions({})) {
    ProductCase of = Case(shape);
    ASSERT_EQ(Multiply(of.Product(Epilogue::kBias)), ProductStatus::kDone);
    of.ExpectOut([&](int64_t row, int64_t column) { return of.Sum(row, column) + of.bias(column); });
  }
  EXPECT_THAT(CountedProducts(), ElementsAre(Pair("bias", 4)));
}

TEST_P(EpilogueProductTest, LinesMayLieApartAndWhatLiesBetweenThemStays) {
  for (const ProductShape& shape : Transpositions({.rows = 24, .columns = 16, .depth = 40, .gap = 8})) {
    ProductCase of = Case(shape);
    ASSERT_EQ(Multiply(of.Product(Epilogue::kGelu)), ProductStatus::kDone);
    const auto exact = [&](int64_t row, int64_t column) { return of.Sum(row, column) + of.bias(column); };
    of.ExpectPreActivation(exact);
    of.ExpectOut([&](int64_t row, int64_t column) { return Gelu(exact(row, column)); });
  }
}

TEST_P(EpilogueProductTest, RowsAndDepthOfAnyNumberAreTaken) {
  // Of lines at multiples of eight elements.
  ProductCase by_rows = Case({.rows = 23, .columns = 16, .depth = 40});
  ASSERT_EQ(Multiply(by_rows.Product(Epilogue::kNone)), ProductStatus::kDone);
  by_rows.ExpectOut([&](int64_t row, int64_t column) { return by_rows.Sum(row, column); });
  ProductCase by_columns =
      Case(Storage::kFp32, {.rows = 24, .columns = 16, .depth = 37, .a_transposed = true});
  ASSERT_EQ(Multiply(by_columns.Product(Epilogue::kBiasGradient)), ProductStatus::kDone);
  by_columns.ExpectOut([&](int64_t row, int64_t column) { return by_columns.Sum(row, column); });
  by_columns.ExpectBiasGradient();
}

TEST_P(EpilogueProductTest, AGeluIsThatOfTheSumAndItsInputIsKept) {
  for (const bool biased : {false, true}) {
    ProductCase of = Case({.b_transposed = true});
    EpilogueProduct product = of.Product(Epilogue::kGelu);
    if (!biased) product.bias = nullptr;
    ASSERT_EQ(Multiply(product), ProductStatus::kDone);
    const auto exact = [&](int64_t row, int64_t column) {
      return of.Sum(row, column) + (biased ? of.bias(column) : 0);
    };
    of.ExpectPreActivation(exact);
    of.ExpectOut([&](int64_t row, int64_t column) { return Gelu(exact(row, column)); });
  }
  EXPECT_THAT(CountedProducts(), ElementsAre(Pair("gelu", 2)));
}

TEST_P(EpilogueProductTest, AGelusGradientIsTimesTheSlopeAtItsInput) {
  ProductCase of = Case({.gap = 8});
  ASSERT_EQ(Multiply(of.Product(Epilogue::kGeluGradient)), ProductStatus::kDone);
  of.ExpectOut([&](int64_t row, int64_t column) {
    return of.Sum(row, column) * GeluSlope(of.pre_before(row, column));
  });
  EXPECT_THAT(CountedProducts(), ElementsAre(Pair("gelu gradient", 1)));
}

TEST_P(EpilogueProductTest, ABiasGradientIsTheSumOverTheDepthAndTheProductMayBeAdded) {
  for (const bool accumulate : {false, true}) {
    ProductCase of = Case(Storage::kFp32, {.a_transposed = true, .gap = 8});
    EpilogueProduct product = of.Product(Epilogue::kBiasGradient);
    product.accumulate = accumulate;
    if (accumulate) of.FillOut();
    ASSERT_EQ(Multiply(product), ProductStatus::kDone);
    of.ExpectOut([&](int64_t row, int64_t column) {
      return of.Sum(row, column) + (accumulate ? of.out_before(row, column) : 0);
    });
    of.ExpectBiasGradient();
  }
  EXPECT_THAT(CountedProducts(), ElementsAre(Pair("bias gradient", 2)));
}

TEST_P(EpilogueProductTest, AProductIsAddedToAnOutOfItsOwnTypeToo) {
  ProductCase of = Case({.gap = 16});
  EpilogueProduct product = of.Product(Epilogue::kNone);
  product.accumulate = true;
  of.FillOut();
  ASSERT_EQ(Multiply(product), ProductStatus::kDone);
  of.ExpectOut([&](int64_t row, int64_t column) { return of.Sum(row, column) + of.out_before(row, column); });
}

TEST_P(EpilogueProductTest, EachCandidateComputesTheSame) {
  for (const int candidate : {0, 1}) {
    ProductCase of = Case();
    EpilogueProduct product = of.Product(Epilogue::kBias);
    product.candidate = candidate;
    ASSERT_EQ(Multiply(product), ProductStatus::kDone) << candidate;
    of.ExpectOut([&](int64_t row, int64_t column) { return of.Sum(row, column) + of.bias(column); });
  }
}

TEST_P(EpilogueProductTest, AnAlgorithmIsAskedForOnceForAllProductsOfOneKind) {
  ProductCase of = Case(UnseenShape());
  EpilogueProduct product = of.Product(Epilogue::kBias);
  const auto asked = [&] {
    const int64_t before = AlgorithmSearches();
    EXPECT_EQ(Multiply(product), ProductStatus::kDone);
    return AlgorithmSearches() - before;
  };
  EXPECT_EQ(asked(), 1);
  EXPECT_EQ(asked(), 0);
  product.rows = 16;
  EXPECT_EQ(asked(), 1) << "another shape";
  product.candidate = 1;
  EXPECT_EQ(asked(), 1) << "another of the library's kernels";
  product.epilogue = Epilogue::kNone;
  product.bias = nullptr;
  EXPECT_EQ(asked(), 1) << "another epilogue";
  EXPECT_EQ(asked(), 0);
  product.accumulate = true;
  EXPECT_EQ(asked(), 0) << "the same, added to what is there";
}

TEST_P(EpilogueProductTest, ThatThereIsNoAlgorithmIsAskedOnceToo) {
  ProductCase of = Case(UnseenShape());
  EpilogueProduct product = of.Product(Epilogue::kNone);
  product.candidate = 99;
  for (int time = 0; time < 3; ++time) EXPECT_EQ(Multiply(product), ProductStatus::kUnsupported);
  EXPECT_EQ(AlgorithmSearches(), 1);
  of.ExpectNothingWritten();
}

#ifdef TRAINWRIGHT_HOST_SEAM
/// As a library may; cuBLASLt takes such rows.
TEST_P(EpilogueProductTest, RowsOfNoMultipleOfEightElementsAreRefusedAndNothingIsWritten) {
  ProductCase of = Case({.columns = 15, .gap = 1});
  EXPECT_EQ(Multiply(of.Product(Epilogue::kNone)), ProductStatus::kUnsupported);
  of.ExpectNothingWritten();
  EXPECT_THAT(CountedProducts(), ElementsAre(Pair("unsupported", 1)));
}
#endif

}  // namespace
}  // namespace trainwright::cuda
