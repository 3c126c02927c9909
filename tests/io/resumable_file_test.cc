#include "lib/io/resumable_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace trainwright {
namespace {

TEST(ResumableFileTest, AppearsAtTheCommitAndLeavesNothingBeside) {
  const test::TemporaryFolder folder;
  ResumableFileSink sink(folder.path("out"), 0);
  sink.Write(AsBytes("hello"));
  EXPECT_EQ(test::NamesIn(folder.path()), std::set<std::string>{".out.partial"});
  sink.Overwrite(0, AsBytes("J"));
  sink.Commit();
  EXPECT_EQ(test::NamesIn(folder.path()), std::set<std::string>{"out"});
  EXPECT_EQ(test::ReadFile(folder.path("out")), "Jello");
}

TEST(ResumableFileTest, AnotherWriterGoesOnBehindWhatItKeeps) {
  const test::TemporaryFolder folder;
  {
    ResumableFileSink sink(folder.path("out"), 0);
    sink.Write(AsBytes("abcdef"));
    sink.Sync();
  }
  ResumableFileSink sink(folder.path("out"), 4);
  EXPECT_EQ(sink.size_bytes(), 4u);
  sink.Write(AsBytes("X"));
  sink.Commit();
  EXPECT_EQ(test::ReadFile(folder.path("out")), "abcdX");
}

TEST(ResumableFileTest, WhatIsNotKeptIsGone) {
  const test::TemporaryFolder folder;
  { ResumableFileSink(folder.path("out"), 0).Write(AsBytes("old content")); }
  ResumableFileSink sink(folder.path("out"), 0);
  sink.Write(AsBytes("new"));
  sink.Commit();
  EXPECT_EQ(test::ReadFile(folder.path("out")), "new");
}

TEST(ResumableFileTest, AnOlderFileStaysUntilTheCommit) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("out"), "old");
  ResumableFileSink sink(folder.path("out"), 0);
  sink.Write(AsBytes("new"));
  EXPECT_EQ(test::ReadFile(folder.path("out")), "old");
  sink.Commit();
  EXPECT_EQ(test::ReadFile(folder.path("out")), "new");
}

TEST(ResumableFileTest, OneProcessAtATimeHasIt) {
  const test::TemporaryFolder folder;
  const ResumableFileSink first(folder.path("out"), 0);
  EXPECT_EQ(test::CodeOf([&] { ResumableFileSink(folder.path("out"), 0); }), ErrorCode::kUsage);
}

TEST(ResumableFileTest, AFileShorterThanWhatIsKeptIsRefused) {
  const test::TemporaryFolder folder;
  { ResumableFileSink(folder.path("out"), 0).Write(AsBytes("abc")); }
  EXPECT_EQ(test::CodeOf([&] { ResumableFileSink(folder.path("out"), 4); }), ErrorCode::kBadInput);
}

}  // namespace
}  // namespace trainwright
