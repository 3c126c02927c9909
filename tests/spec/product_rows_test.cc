// Micro-batches of almost one size share their products' choices.
#include "lib/spec/product_rows.h"

#include <gtest/gtest.h>

#include <set>

namespace trainwright {
namespace {

TEST(ProductRowsTest, AMicroBatchThatLacksAFewTokensIsNamedAsAFullOne) {
  EXPECT_EQ(RowsOfProduct(65536), 65536);
  EXPECT_EQ(RowsOfProduct(65535), 65536);
  EXPECT_EQ(RowsOfProduct(65536 - 4000), 65536);
  EXPECT_EQ(RowsOfProduct(24576), 24576);
  EXPECT_EQ(RowsOfProduct(24570), 24576);
}

TEST(ProductRowsTest, EightNamesServeAnOctaveAndNoneIsLessThanItsRows) {
  for (const int64_t octave : {1, 2, 4, 8, 64, 4096}) {
    std::set<int64_t> names;
    for (int64_t rows = octave; rows < 2 * octave; ++rows) {
      names.insert(RowsOfProduct(rows));
      EXPECT_GE(RowsOfProduct(rows), rows);
      EXPECT_LE(8 * RowsOfProduct(rows), 9 * rows + 7);
    }
    EXPECT_LE(names.size(), 9u) << octave;  // the last of them begins the next octave
  }
}

}  // namespace
}  // namespace trainwright
