#include "lib/io/byte_sink.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "lib/base/signals.h"
#include "lib/io/descriptor.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::NamesIn;
using test::ReadFile;
using test::TemporaryFolder;
using test::WriteFile;

TEST(AtomicFileSinkTest, TheBeginningCanBeWrittenLast) {
  const TemporaryFolder folder;
  AtomicFileSink sink(folder.path("file"));
  sink.Write(AsBytes("....body"));
  sink.Overwrite(0, AsBytes("head"));
  sink.Write(AsBytes("!"));
  sink.Commit();
  EXPECT_EQ(ReadFile(folder.path("file")), "headbody!");
}

TEST(AtomicFileSinkTest, AFileThatIsToStayIsNotReplaced) {
  const TemporaryFolder folder;
  AtomicFileSink first(folder.path("file")), second(folder.path("other"));
  first.KeepExisting();
  second.KeepExisting();
  first.Write(AsBytes("first"));
  second.Write(AsBytes("second"));
  WriteFile(folder.path("file"), "appeared meanwhile");
  EXPECT_EQ(CodeOf([&] { first.Commit(); }), ErrorCode::kUsage);
  second.Commit();
  EXPECT_EQ(ReadFile(folder.path("file")), "appeared meanwhile");
  EXPECT_EQ(ReadFile(folder.path("other")), "second");
  EXPECT_EQ(NamesIn(folder.path()), (std::set<std::string>{"file", "other"}));
}

TEST(SpooledSinkTest, PassesEverythingOnAtTheCommitAndNothingBefore) {
  const TemporaryFolder folder;
  auto target = std::make_unique<AtomicFileSink>(folder.path("file"));
  const AtomicFileSink& file = *target;
  SpooledSink sink(std::move(target));
  const std::string body(3'000'000, 'x');
  sink.Write(AsBytes("...."));
  sink.Write(AsBytes(body));
  sink.Overwrite(0, AsBytes("head"));
  EXPECT_EQ(file.size_bytes(), 0u);
  sink.Commit();
  EXPECT_EQ(ReadFile(folder.path("file")), "head" + body);
}

TEST(AtomicFileSinkTest, WithoutCommitNothingIsLeftAndTheOldFileStays) {
  const TemporaryFolder folder;
  WriteFile(folder.path("file"), "old");
  {
    AtomicFileSink sink(folder.path("file"));
    sink.Write(AsBytes("new"));
  }
  EXPECT_EQ(ReadFile(folder.path("file")), "old");
  EXPECT_EQ(NamesIn(folder.path()), std::set<std::string>{"file"});
}

TEST(AtomicFileSinkTest, CommitReplacesTheOldFileWhole) {
  const TemporaryFolder folder;
  WriteFile(folder.path("file"), "something longer");
  AtomicFileSink sink(folder.path("file"));
  sink.Write(AsBytes("ne"));
  sink.Write(AsBytes("w"));
  EXPECT_EQ(ReadFile(folder.path("file")), "something longer");
  sink.Commit();
  EXPECT_EQ(ReadFile(folder.path("file")), "new");
  EXPECT_EQ(NamesIn(folder.path()), std::set<std::string>{"file"});
}

TEST(AtomicFileSinkTest, MissingFolderIsAnIoError) {
  EXPECT_EQ(CodeOf([] { AtomicFileSink sink("/nonexistent-folder/file"); }), ErrorCode::kIo);
}

TEST(AtomicFileSinkTest, AFullDiskIsAnIoErrorAndLeavesTheOldFile) {
  const TemporaryFolder folder;
  WriteFile(folder.path("file"), "old");
  const pid_t child = fork();
  if (child == 0) {
    // A file-size limit fails the write as a full disk does, without needing one.
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto code = CodeOf([&] {
      AtomicFileSink sink(folder.path("file"));
      sink.Write(AsBytes(std::string(5000, 'x')));
      sink.Commit();
    });
    _exit(code == ErrorCode::kIo ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(ReadFile(folder.path("file")), "old");
  EXPECT_EQ(NamesIn(folder.path()), std::set<std::string>{"file"});
}

TEST(AtomicFileSinkTest, KilledWriterLeavesATemporaryThatTheNextRunRemoves) {
  const TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    AtomicFileSink sink(folder.path("file"));
    sink.Write(AsBytes("half"));
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_FALSE(std::filesystem::exists(folder.path("file")));
  EXPECT_EQ(NamesIn(folder.path()).size(), 1u);
  EXPECT_EQ(RemoveStaleTemporariesOf(folder.path("file")), 1);
  EXPECT_TRUE(NamesIn(folder.path()).empty());
}

// In other containers the process has the same number, as here.
TEST(AtomicFileSinkTest, OfTwoWritersOfOneFileEachWritesItsOwnAndTheLastOneStays) {
  const TemporaryFolder folder;
  const std::string path = folder.path("file");
  const std::unique_ptr<ByteSink> first = OpenSink(path, /*binary=*/true, /*allow_terminal=*/false);
  first->Write(AsBytes("first, "));
  const std::unique_ptr<ByteSink> second = OpenSink(path, /*binary=*/true, /*allow_terminal=*/false);
  second->Write(AsBytes("second"));
  first->Write(AsBytes("in two pieces"));
  second->Commit();
  EXPECT_EQ(ReadFile(path), "second");
  first->Commit();
  EXPECT_EQ(ReadFile(path), "first, in two pieces");
  EXPECT_EQ(NamesIn(folder.path()), std::set<std::string>{"file"});
}

TEST(AtomicFileSinkTest, ALinkThatSomebodyPutUnderATemporaryNameIsNotFollowed) {
  const TemporaryFolder folder;
  WriteFile(folder.path("victim"), "precious");
  std::filesystem::create_symlink("victim", folder.path(".file.tmp-" + std::to_string(getpid())));
  WriteFileAtomically(folder.path("file"), AsBytes("new"));
  EXPECT_EQ(ReadFile(folder.path("victim")), "precious");
  EXPECT_EQ(ReadFile(folder.path("file")), "new");
  EXPECT_FALSE(std::filesystem::is_symlink(folder.path("file")));
}

TEST(StaleTemporariesTest, GoWhenNobodyHoldsThemAndTheirNameIsExact) {
  const TemporaryFolder folder;
  AtomicFileSink living(folder.path("file"));
  const std::string of_living = *NamesIn(folder.path()).begin();
  const std::set<std::string> others = {of_living,
                                        ".file.tmp-1234567",    // of version 0.1.0, which may live
                                        ".file.tmp-abcdefghi",  // nobody's
                                        ".file.tmp-",
                                        ".file10.tmp-abcdefgh",
                                        ".my.file.tmp-abcdefgh",
                                        "file.tmp-abcdefgh",
                                        ".hidden"};
  for (const std::string& name : others) {
    if (name != of_living) WriteFile(folder.path(name), "");
  }
  WriteFile(folder.path(".file.tmp-abcdefgh"), "half");
  std::filesystem::create_symlink(".hidden", folder.path(".file.tmp-bcdefghi"));
  EXPECT_EQ(RemoveStaleTemporariesOf(folder.path("file")), 1);
  std::set<std::string> left = others;
  left.insert(".file.tmp-bcdefghi");  // a link has no lock
  EXPECT_EQ(NamesIn(folder.path()), left);
}

TEST(StaleTemporariesTest, ThoseOfProcessNumbersGoUnderALock) {
  const TemporaryFolder folder;
  for (const char* name : {".shard-3.tmp-1", ".shard-3.tmp-abcdefgh", ".other.tmp-1", "shard-3.tmp-1"}) {
    WriteFile(folder.path(name), "");
  }
  const auto is_shard = [](const std::string& name) { return name == "shard-3"; };
  EXPECT_EQ(RemoveOldTemporaries(folder.path(), is_shard), 1);
  EXPECT_EQ(NamesIn(folder.path()),
            (std::set<std::string>{".other.tmp-1", ".shard-3.tmp-abcdefgh", "shard-3.tmp-1"}));
}

TEST(OpenSinkTest, ADeviceOrPipeIsWrittenInPlaceAndStays) {
  const TemporaryFolder folder;
  const std::string pipe = folder.path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  const std::unique_ptr<ByteSink> sink = OpenSink(pipe, /*binary=*/true, /*allow_terminal=*/false);
  sink->Write(AsBytes("through"));
  sink->Commit();
  char content[16] = {};
  EXPECT_EQ(read(reader, content, sizeof(content)), 7);
  EXPECT_STREQ(content, "through");
  close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST(OpenSinkTest, APipeIsWrittenAfterASignalToStopWhereTheCallerAsksForIt) {
  const TemporaryFolder folder;
  const std::string pipe = folder.path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  const auto gives_up = OpenSink(pipe, /*binary=*/true, /*allow_terminal=*/false);
  const auto finishes = OpenSink(pipe, /*binary=*/true, /*allow_terminal=*/false, {}, OnStop::kFinish);
  SetStopSignalForTest(SIGTERM);
  EXPECT_EQ(CodeOf([&] { gives_up->Write(AsBytes("lost")); }), ErrorCode::kTerminated);
  finishes->Write(AsBytes("through"));
  SetStopSignalForTest(0);
  char content[16] = {};
  EXPECT_EQ(read(reader, content, sizeof(content)), 7);
  EXPECT_STREQ(content, "through");
  close(reader);
}

TEST(WriteFileAtomicallyTest, APipeIsWrittenInPlaceAndStays) {
  const TemporaryFolder folder;
  const std::string pipe = folder.path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  WriteFileAtomically(pipe, AsBytes("through"));
  char content[16] = {};
  EXPECT_EQ(read(reader, content, sizeof(content)), 7);
  close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST(OpenSinkTest, ASymbolicLinkStaysAndItsTargetIsReplaced) {
  const TemporaryFolder folder;
  WriteFile(folder.path("target"), "old");
  std::filesystem::create_symlink("target", folder.path("link"));
  const std::unique_ptr<ByteSink> sink =
      OpenSink(folder.path("link"), /*binary=*/true, /*allow_terminal=*/false);
  sink->Write(AsBytes("new"));
  sink->Commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
  EXPECT_EQ(ReadFile(folder.path("target")), "new");
}

}  // namespace
}  // namespace trainwright
