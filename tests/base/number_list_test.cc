#include "lib/base/number_list.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace trainwright {
namespace {

using Wholes = std::vector<int64_t>;

TEST(NumberListTest, NumbersStandBetweenCommas) {
  EXPECT_EQ(ParseNumberList<int64_t>("1,10,-3"), (Wholes{1, 10, -3}));
  EXPECT_EQ(ParseNumberList<int64_t>("7"), Wholes{7});
  EXPECT_EQ(ParseNumberList<double>("0.5,1e3"), (std::vector<double>{0.5, 1000}));
}

TEST(NumberListTest, WhatIsNoNumberMakesItNoList) {
  for (const char* text : {"", ",", "1,", ",1", "1,,2", "1 ,2", "1;2", "x", "1.5", "9223372036854775808"}) {
    EXPECT_EQ(ParseNumberList<int64_t>(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace trainwright
