#include "lib/checkpoint/checkpoint_metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "lib/base/error.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

TEST(CheckpointMetadataTest, ListsFilesAtAnyDepthAndNoneOutsideItsFolder) {
  for (const char* name : {"a", "average/a", "average/1_Pooling/config.json", "..a/b..", "a/.b/c/d/e"}) {
    EXPECT_TRUE(IsCheckpointFileName(name)) << name;
  }
  for (const char* name : {"", "/", "/a", "a/", "a//b", ".", "..", "./a", "../a", "a/..", "a/../../b",
                           "a/b/../c", "a/./b", "a/b/", "a/b/.."}) {
    EXPECT_FALSE(IsCheckpointFileName(name)) << name;
  }
}

TEST(CheckpointMetadataTest, AFileOfAnotherProgramIsAsNone) {
  const test::TemporaryFolder folder;
  for (const char* text : {R"({"source": "https://a.example", "license": "mit"})", R"({"files": ["a"]})",
                           R"({"files": {"config.json": 1}})", R"(["a"])", R"({"schema": 1})",
                           R"({"schema": "hub/1", "files": {}, "provenance": {"init": "x"}})"}) {
    test::WriteFile(folder.path("metadata.json"), text);
    EXPECT_EQ(test::MessageOf([&] { EXPECT_FALSE(VerifyCheckpointFiles(folder.path())) << text; }), "")
        << text;
    EXPECT_TRUE(ReadCheckpointProvenance(folder.path(), "init").is_null()) << text;
  }
}

TEST(CheckpointMetadataTest, ADamagedFileOfOursIsRefused) {
  const test::TemporaryFolder folder;
  for (const char* text :
       {R"({"schema": "trainwright.model/1"})", R"({"schema": "trainwright.checkpoint/1", "files": ["a"]})",
        R"({"schema": "trainwright.model/1", "files": {"config.json": 1}})",
        R"({"schema": "trainwrighd.model/1", "files": {"a": {"sha256": "00"}}})"}) {
    test::WriteFile(folder.path("metadata.json"), text);
    EXPECT_EQ(test::CodeOf([&] { VerifyCheckpointFiles(folder.path()); }), ErrorCode::kBadInput) << text;
  }
}

TEST(CheckpointMetadataTest, WhatIsNoJsonIsRefusedWithWhatToDo) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("metadata.json"), R"({"schema": "trainwright.mo)");
  EXPECT_EQ(test::CodeOf([&] { VerifyCheckpointFiles(folder.path()); }), ErrorCode::kBadInput);
  EXPECT_THAT(test::MessageOf([&] { VerifyCheckpointFiles(folder.path()); }),
              testing::AllOf(testing::HasSubstr("metadata.json: is no JSON"),
                             testing::HasSubstr("delete the file where another program")));
}

}  // namespace
}  // namespace trainwright
