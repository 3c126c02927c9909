#include "lib/nn/attention/span_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainwright {

void PrintTo(const SpanTable::Run& run, std::ostream* out) {
  *out << run.spans << " x " << run.length << " from " << run.begin;
}

namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Equal = SpanTable::Run;

TEST(SpanTableTest, NeighboursOfOneLengthAreARun) {
  EXPECT_THAT(SpanTable({0, 4, 8, 12}).EqualRuns(), ElementsAre(Equal{0, 3, 4}));
  EXPECT_THAT(SpanTable({0, 4, 8, 9, 13}).EqualRuns(),
              ElementsAre(Equal{0, 2, 4}, Equal{8, 1, 1}, Equal{9, 1, 4}));
  EXPECT_THAT(SpanTable({0, 7}).EqualRuns(), ElementsAre(Equal{0, 1, 7}));
}

TEST(SpanTableTest, EmptySpansDivideNoRun) {
  EXPECT_THAT(SpanTable({0, 0, 4, 4, 8, 8}).EqualRuns(), ElementsAre(Equal{0, 2, 4}));
  EXPECT_THAT(SpanTable({0, 0}).EqualRuns(), IsEmpty());
  EXPECT_THAT(SpanTable(std::vector<int32_t>{}).EqualRuns(), IsEmpty());
}

TEST(SpanTableTest, AllAreEqualWhereThereIsOneLength) {
  EXPECT_TRUE(SpanTable({0, 4, 4, 8}).all_equal());
  EXPECT_TRUE(SpanTable({0}).all_equal());
  EXPECT_FALSE(SpanTable({0, 4, 8, 11}).all_equal());
}

}  // namespace
}  // namespace trainwright
