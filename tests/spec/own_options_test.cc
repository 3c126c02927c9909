#include "lib/spec/own_options.h"

#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::MessageOf;

TEST(OwnOptions, AreReadAsTheyAreTold) {
  const OwnOptions options = ParseOwnOptions({"b=-2e-05", "a=0.1"}, "--x");
  EXPECT_EQ(options, (OwnOptions{{"a", 0.1}, {"b", -2e-5}}));
  EXPECT_EQ(FormatOwnOptions(options), (std::vector<std::string>{"a=0.1", "b=-2e-05"}));
}

TEST(OwnOptions, OfAnotherFormAreRefused) {
  for (const char* text : {"", "a", "=1", "a=", "a=1x", "a= 1", "a=nan", "a=inf", "a=1e999"}) {
    EXPECT_EQ(CodeOf([&] { ParseOwnOptions({text}, "--x"); }), ErrorCode::kUsage) << text;
  }
  EXPECT_EQ(MessageOf([] { ParseOwnOptions({"a=b"}, "--x"); }), "--x: 'a=b' is not NAME=NUMBER | ");
  EXPECT_EQ(MessageOf([] { ParseOwnOptions({"a=1", "a=2"}, "--x"); }), "--x: gives 'a' twice | ");
}

TEST(OwnOptions, HaveTheDefaultsOfWhatWasNotSaid) {
  EXPECT_EQ(WithDefaults({{"a", 3}}, {{"a", 1}, {"b", 2}}, ErrorCode::kBadInput, "x"),
            (OwnOptions{{"a", 3}, {"b", 2}}));
}

TEST(OwnOptions, OfUnknownNamesAreRefusedWithThoseThatThereAre) {
  const auto complete = [](const OwnOptions& defaults) {
    WithDefaults({{"c", 1}}, defaults, ErrorCode::kBadInput, "the objective toy");
  };
  EXPECT_EQ(CodeOf([&] { complete({}); }), ErrorCode::kBadInput);
  EXPECT_EQ(MessageOf([&] { complete({}); }),
            "the objective toy: has no option 'c' of its own | it has none");
  EXPECT_EQ(MessageOf([&] {
              complete({{"a", 1}, {"b", 2}});
            }),
            "the objective toy: has no option 'c' of its own | it has a, b");
}

}  // namespace
}  // namespace trainwright
