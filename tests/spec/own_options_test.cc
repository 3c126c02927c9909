#include "lib/spec/own_options.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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

TEST(OwnOptions, OfTextAreReadWhereTextsAreTaken) {
  const OwnOptions options =
      ParseOwnOptions({"a=mean", "b=64,128", "c=", "d=1e2", "e=nan", "f=x=y"}, "--x", OwnTexts::kTaken);
  const OwnOptions expected = {{"a", "mean"}, {"b", "64,128"}, {"c", ""},
                               {"d", "1e2"},  {"e", "nan"},    {"f", "x=y"}};
  EXPECT_EQ(options, expected);
  EXPECT_EQ(MessageOf([] { ParseOwnOptions({"mean"}, "--x", OwnTexts::kTaken); }),
            "--x: 'mean' is not NAME=VALUE | ");
}

TEST(OwnOptions, OfWholeNumbersAreToldInDigits) {
  EXPECT_EQ(FormatOwnOptions({{"a", 1e8}, {"b", -3}, {"c", 1e-5}, {"d", 1e300}}),
            (std::vector<std::string>{"a=100000000", "b=-3", "c=1e-05", "d=1e+300"}));
}

// The numbers are as states had them before there were texts.
TEST(OwnOptions, AreStoredAsNumbersAndTexts) {
  const OwnOptions options = {{"a", 0.5}, {"b", 3}, {"c", "mean"}};
  EXPECT_EQ(EncodeOwnOptions(options).dump(), R"({"a":0.5,"b":3.0,"c":"mean"})");
  EXPECT_EQ(DecodeOwnOptions(nlohmann::json::parse(EncodeOwnOptions(options).dump()), "x"), options);
  EXPECT_EQ(DecodeOwnOptions(nlohmann::json::parse(R"({"period":3})"), "x"), (OwnOptions{{"period", 3}}));
}

TEST(OwnOptions, StoredOtherwiseAreRefused) {
  for (const char* stored : {"[]", "3", R"({"a":true})", R"({"a":null})", R"({"a":[1]})"}) {
    EXPECT_EQ(CodeOf([&] { DecodeOwnOptions(nlohmann::json::parse(stored), "x"); }), ErrorCode::kBadInput)
        << stored;
  }
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

TEST(OwnOptions, OfTextInThePlaceOfANumberAreRefused) {
  EXPECT_EQ(MessageOf([] {
              WithDefaults({{"a", "mean"}}, {{"a", 1}}, ErrorCode::kBadInput, "the optimizer toy");
            }),
            "the optimizer toy: its option 'a' cannot be 'mean' | a number");
}

std::vector<OwnOption> Described() {
  return {{.name = "pool_size", .initial = 2, .least = 1, .most = 8, .whole = true, .help = "texts"},
          {.name = "scale", .initial = 0.5, .least = 0.25},
          {.name = "pooling", .initial = "mean", .choices = {"mean", "last"}, .help = "how"},
          {.name = "sizes", .initial = ""}};
}

OwnOptions Completed(const OwnOptions& said, ErrorCode code = ErrorCode::kUsage) {
  return WithDescribed(said, Described(), code, "the objective toy");
}

TEST(DescribedOwnOptions, HaveTheDefaultsOfWhatWasNotSaid) {
  const OwnOptions expected = {{"pool_size", 2}, {"scale", 0.75}, {"pooling", "last"}, {"sizes", ""}};
  EXPECT_EQ(Completed({{"scale", 0.75}, {"pooling", "last"}}), expected);
}

TEST(DescribedOwnOptions, OfTextMayBeWrittenAsNumbers) {
  EXPECT_EQ(Completed({{"sizes", 64}}).at("sizes"), "64");
}

TEST(DescribedOwnOptions, OfTextStayAsTheyAreWritten) {
  EXPECT_EQ(Completed({{"sizes", "007"}}).at("sizes"), "007");
  EXPECT_EQ(Completed(ParseOwnOptions({"sizes=1e3"}, "--x", OwnTexts::kTaken)).at("sizes"), "1e3");
}

TEST(DescribedOwnOptions, OfANumberMayBeWrittenAsText) {
  EXPECT_EQ(Completed({{"scale", "0.750"}}).at("scale"), 0.75);
  EXPECT_TRUE(IsSameOwnValue("0.750", 0.75));
  EXPECT_FALSE(IsSameOwnValue("0.751", 0.75));
  EXPECT_FALSE(IsSameOwnValue("many", 0.75));
  EXPECT_FALSE(IsSameOwnValue("007", "7"));
}

TEST(DescribedOwnOptions, OutOfRangeAreRefusedByTheirFlagWithTheRange) {
  const auto message = [](const char* name, const OwnValue& value) {
    return MessageOf([&] { Completed({{name, value}}); });
  };
  const std::string range = " | a whole number from 1 to 8";
  EXPECT_EQ(message("pool_size", 0), "--pool-size: cannot be '0'" + range);
  EXPECT_EQ(message("pool_size", 9), "--pool-size: cannot be '9'" + range);
  EXPECT_EQ(message("pool_size", 1.5), "--pool-size: cannot be '1.5'" + range);
  EXPECT_EQ(message("pool_size", "many"), "--pool-size: cannot be 'many'" + range);
  EXPECT_EQ(message("pooling", "max"), "--pooling: cannot be 'max' | one of mean, last");
  EXPECT_EQ(message("scale", 0.2),
            "the objective toy: its option 'scale' cannot be '0.2' | a number of at least 0.25");
}

TEST(DescribedOwnOptions, OfAFileAreRefusedInItsName) {
  EXPECT_EQ(MessageOf([] {
              Completed({{"pool_size", 0}}, ErrorCode::kBadInput);
            }),
            "the objective toy: its option 'pool_size' cannot be '0' | a whole number from 1 to 8");
}

}  // namespace
}  // namespace trainwright
