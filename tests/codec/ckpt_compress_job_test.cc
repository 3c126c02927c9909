#include "lib/codec/ckpt_compress_job.h"

#include <gtest/gtest.h>

namespace trainwright {
namespace {

TEST(DefaultCodecThreadsTest, AreOneAProcessorAsFarAs256MibHaveRoomForThem) {
  for (const int processors : {1, 2, 8}) EXPECT_EQ(DefaultCodecThreads({}, processors), processors);
  EXPECT_EQ(DefaultCodecThreads({}, 0), 1) << "unknown";
  EXPECT_EQ(DefaultCodecThreads({}, 192), 16);
  EXPECT_EQ(DefaultCodecThreads({.max = true}, 192), 11);
  EXPECT_EQ(DefaultCodecThreads({.base = "earlier"}, 192), 10);
  EXPECT_EQ(DefaultCodecThreads({.max = true, .base = "earlier"}, 192), 8);
}

}  // namespace
}  // namespace trainwright
