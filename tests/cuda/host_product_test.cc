// What the host's implementation of the seam towards cuBLASLt refuses, as that library may.
#include "tests/support/cuda_emulation/host_product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/nn/cuda/epilogue_product.h"
#include "tests/cuda/kernel_cases.h"
#include "tests/cuda/product_case.h"

namespace trainwright::cuda {
namespace {

using testing::ElementsAre;
using testing::Pair;

class HostProductTest : public StorageTest {
 protected:
  HostProductTest() { cuda_emulation::ResetProductCounts(); }
};
TRAINWRIGHT_STORAGE_CASES(HostProductTest);

TEST_P(HostProductTest, RowsOfNoMultipleOfEightElementsAreRefusedAndNothingIsWritten) {
  ProductCase of(storage(), storage(), access(), {.columns = 15, .gap = 1});
  EXPECT_EQ(MultiplyWithEpilogue(of.Product(Epilogue::kNone), nullptr, nullptr), ProductStatus::kUnsupported);
  of.ExpectNothingWritten();
  EXPECT_THAT(cuda_emulation::ProductCounts(), ElementsAre(Pair("unsupported", 1)));
}

}  // namespace
}  // namespace trainwright::cuda
