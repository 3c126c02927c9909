#include "lib/loading/sample_caps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/error.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

class SampleCapsTest : public testing::Test {
 protected:
  std::vector<uint64_t> Caps(const std::string& json, uint64_t most = 0) {
    test::WriteFile(path_, json);
    return SampleCapsOf(parts_, most, path_);
  }
  test::TemporaryFolder folder_;
  const std::string path_ = folder_.path("caps.json");
  const std::vector<ShardSetPart> parts_ = {{.name = "some/where/nli.tws"}, {.name = "qa/"}};
};

TEST_F(SampleCapsTest, AreThoseOfTheFileByTheLastPartOfAPath) {
  EXPECT_THAT(Caps(R"({"nli.tws": 5, "qa": 70, "unused": 1})"), testing::ElementsAre(5, 70));
}

TEST_F(SampleCapsTest, TheLowerOneCounts) {
  EXPECT_THAT(Caps(R"({"nli.tws": 5, "qa": 70})", 10), testing::ElementsAre(5, 10));
}

TEST_F(SampleCapsTest, WithoutAFileEachSetHasTheSame) {
  EXPECT_THAT(SampleCapsOf(parts_, 9, ""), testing::ElementsAre(9, 9));
}

TEST_F(SampleCapsTest, ASetThatIsNotNamedIsRefusedByItsName) {
  EXPECT_EQ(test::CodeOf([&] { Caps(R"({"nli.tws": 5})"); }), ErrorCode::kUsage);
  EXPECT_THAT(test::MessageOf([&] { Caps(R"({"nli.tws": 5})"); }), testing::HasSubstr("\"qa\""));
}

TEST_F(SampleCapsTest, ASetWithoutASampleIsRefused) {
  EXPECT_EQ(test::CodeOf([&] { Caps(R"({"nli.tws": 5, "qa": 0})"); }), ErrorCode::kUsage);
}

TEST_F(SampleCapsTest, SetsOfOneNameAreRefusedByTheirPaths) {
  test::WriteFile(path_, R"({"nli": 5})");
  const std::vector<ShardSetPart> parts = {{.name = "here/nli"}, {.name = "there/nli/"}};
  const auto caps = [&] { SampleCapsOf(parts, 0, path_); };
  EXPECT_EQ(test::CodeOf(caps), ErrorCode::kUsage);
  EXPECT_THAT(test::MessageOf(caps), testing::HasSubstr("here/nli and there/nli/"));
  EXPECT_THAT(SampleCapsOf(parts, 9, ""), testing::ElementsAre(9, 9));
}

TEST_F(SampleCapsTest, WhatIsNoObjectOfWholeNumbersIsRefused) {
  for (const char* json : {"[1]", R"({"nli.tws": -5, "qa": 1})", R"({"nli.tws": 1.5, "qa": 1})",
                           R"({"nli.tws": "5", "qa": 1})", "{"}) {
    EXPECT_EQ(test::CodeOf([&] { Caps(json); }), ErrorCode::kBadInput) << json;
  }
}

}  // namespace
}  // namespace trainwright
