#include "lib/checkpoint/checkpoint_metadata.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace trainwright
