#include "lib/io/byte_source.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "lib/base/rng.h"
#include "lib/io/cut_mapping.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::MessageOf;
using test::ReadFile;
using test::RunShell;
using test::TemporaryFolder;
using test::WriteFile;

std::string ReadAll(ByteSource* source, size_t step) {
  std::string text;
  std::vector<uint8_t> buffer(step);
  while (const size_t count = source->Read(buffer.data(), step)) text.append(AsText({buffer.data(), count}));
  return text;
}

std::string ReadDecompressed(const std::string& path, size_t step = 1 << 16) {
  return ReadAll(DecompressIfNeeded(OpenSource(path)).get(), step);
}

std::string SomeText() {
  std::string text;
  const Rng rng(1, "text");
  for (int i = 0; i < 100000; ++i) text += std::to_string(rng.Bits(i) % 1000) + (i % 17 == 0 ? "\n" : " ");
  return text;
}

class DecompressTest : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteFile(folder_.path("plain"), SomeText());
    ASSERT_EQ(RunShell("cd " + folder_.path() +
                       " && gzip -k plain && zstd -q plain && cat plain.gz plain.gz > two.gz && cat "
                       "plain.zst plain.zst > two.zst")
                  .exit_status,
              0);
  }
  TemporaryFolder folder_;
};

// The gzip and zstd programs are the oracle.
TEST_F(DecompressTest, GzipAndZstdContentEqualsThePlainFile) {
  const std::string text = SomeText();
  EXPECT_EQ(ReadDecompressed(folder_.path("plain")), text);
  EXPECT_EQ(ReadDecompressed(folder_.path("plain.gz")), text);
  EXPECT_EQ(ReadDecompressed(folder_.path("plain.zst")), text);
}

TEST_F(DecompressTest, ConcatenatedMembersAndFramesAreReadOn) {
  const std::string text = SomeText();
  EXPECT_EQ(ReadDecompressed(folder_.path("two.gz")), text + text);
  EXPECT_EQ(ReadDecompressed(folder_.path("two.zst")), text + text);
}

TEST_F(DecompressTest, ReadSizesDoNotMatter) {
  const std::string text = SomeText();
  EXPECT_EQ(ReadDecompressed(folder_.path("plain.gz"), 7), text);
  EXPECT_EQ(ReadDecompressed(folder_.path("plain.zst"), 7), text);
}

TEST_F(DecompressTest, ACutStreamIsBadInput) {
  for (const char* name : {"plain.gz", "plain.zst"}) {
    const std::string whole = ReadFile(folder_.path(name));
    for (const size_t cut : {whole.size() - 1, whole.size() - 8, whole.size() / 2, size_t{20}}) {
      SCOPED_TRACE(std::string(name) + " cut to " + std::to_string(cut));
      WriteFile(folder_.path("cut"), whole.substr(0, cut));
      EXPECT_EQ(CodeOf([&] { ReadDecompressed(folder_.path("cut")); }), ErrorCode::kBadInput);
    }
  }
}

// As pzstd writes them; the zstd program is the oracle.
TEST_F(DecompressTest, ZstdContentMayBeginWithASkippableFrame) {
  const std::string skippable("\x5F\x2A\x4D\x18\x04\x00\x00\x00size", 12);
  WriteFile(folder_.path("skip.zst"), skippable + ReadFile(folder_.path("plain.zst")));
  ASSERT_EQ(RunShell("cd " + folder_.path() + " && zstd -qdc skip.zst | cmp - plain").exit_status, 0);
  EXPECT_EQ(ReadDecompressed(folder_.path("skip.zst")), SomeText());
}

TEST_F(DecompressTest, AShardIsNoCompressedText) {
  const std::string shard("\x50\x2A\x4D\x18\x10\x00\x00\x00\x89TWS\r\n\x1A\n", 16);
  WriteFile(folder_.path("shard"), shard + "more");
  EXPECT_EQ(ReadDecompressed(folder_.path("shard")), shard + "more");
}

TEST_F(DecompressTest, ZerosBehindGzipArePadding) {
  const std::string zeros(1000, '\0'), member = ReadFile(folder_.path("plain.gz"));
  WriteFile(folder_.path("padded.gz"), member + zeros);
  ASSERT_EQ(RunShell("cd " + folder_.path() + " && gzip -dc padded.gz | cmp - plain").exit_status, 0);
  EXPECT_EQ(ReadDecompressed(folder_.path("padded.gz")), SomeText());
  WriteFile(folder_.path("garbage.gz"), member + zeros + "garbage");
  EXPECT_EQ(CodeOf([&] { ReadDecompressed(folder_.path("garbage.gz")); }), ErrorCode::kBadInput);
}

// gzip and zstd refuse the same files.
TEST_F(DecompressTest, ANameThatImpliesCompressionBelongsToNoFileThatIsCutBeforeItShows) {
  for (const auto& [name, content] : std::vector<std::pair<std::string, std::string>>{
           {"none.gz", ""}, {"one.gz", "\x1F"}, {"none.zst", ""}, {"three.zst", "\x28\xB5\x2F"}}) {
    WriteFile(folder_.path(name), content);
    EXPECT_EQ(CodeOf([&] { ReadDecompressed(folder_.path(name)); }), ErrorCode::kBadInput) << name;
  }
  WriteFile(folder_.path("text.gz"), "plain text");
  EXPECT_EQ(ReadDecompressed(folder_.path("text.gz")), "plain text");
}

TEST_F(DecompressTest, AWindowThatIsTooLargeIsToldWithAWayOut) {
  const std::string two_gib("\x28\xB5\x2F\xFD\x00\xA8", 6);
  WriteFile(folder_.path("long.zst"), two_gib + std::string(20, 'x'));
  EXPECT_NE(MessageOf([&] { ReadDecompressed(folder_.path("long.zst")); }).find("zstd -dc --long=31"),
            std::string::npos);
}

TEST_F(DecompressTest, EmptyAndTinyFilesPassUnchanged) {
  for (const std::string text : {"", "a", "\x1f", "ab\n"}) {
    WriteFile(folder_.path("tiny"), text);
    EXPECT_EQ(ReadDecompressed(folder_.path("tiny")), text);
  }
}

TEST(OpenSourceTest, MissingFilesAndFoldersAreIoErrorsThatNameThePath) {
  const TemporaryFolder folder;
  EXPECT_EQ(CodeOf([&] { OpenSource(folder.path("none")); }), ErrorCode::kIo);
  EXPECT_NE(MessageOf([&] { OpenSource(folder.path("none")); }).find(folder.path("none")), std::string::npos);
  EXPECT_EQ(CodeOf([&] { OpenSource(folder.path()); }), ErrorCode::kIo);
}

/// What others do to the file "input" while it is read.
class ChangingFileTest : public ::testing::Test {
 protected:
  static constexpr size_t kBytes = 1 << 20;

  /// Opens the file, reads a little, runs the command, and reads the rest.
  std::optional<ErrorCode> ReadAcross(const std::string& command, const std::string& content) {
    WriteFile(folder_.path("input"), content);
    WriteFile(folder_.path("other"), std::string(content.size(), '?'));
    const std::unique_ptr<ByteSource> source = DecompressIfNeeded(OpenSource(folder_.path("input")));
    uint8_t start[100];
    EXPECT_GT(source->Read(start, sizeof(start)), 0u);
    EXPECT_EQ(RunShell("cd " + folder_.path() + " && " + command).exit_status, 0) << command;
    return CodeOf([&] { ReadAll(source.get(), 1 << 16); });
  }
  TemporaryFolder folder_;
};

TEST_F(ChangingFileTest, WhatIsCutGrownOrOverwrittenIsBadInput) {
  const std::string content(kBytes, 'x');
  for (const std::string command :
       {"truncate -s 10 input", "truncate -s 700000 input", "truncate -s 0 input", "echo more >> input",
        "dd if=other of=input bs=1000 count=1 seek=900 conv=notrunc status=none", "cat other > input",
        "touch -r input time && cat other > input && touch -r time input", "touch input"}) {
    EXPECT_EQ(ReadAcross(command, content), ErrorCode::kBadInput) << command;
  }
}

TEST_F(ChangingFileTest, AFileThatIsCutWhereItsCompressedContentEndsOneMemberIsBadInput) {
  WriteFile(folder_.path("text"), SomeText());
  ASSERT_EQ(RunShell("cd " + folder_.path() + " && gzip -k text && zstd -q text").exit_status, 0);
  for (const std::string name : {"text.gz", "text.zst"}) {
    const std::string member = ReadFile(folder_.path(name));
    std::string many;
    while (many.size() < kBytes) many += member;
    const std::string cut = "truncate -s " + std::to_string(many.size() - member.size()) + " input";
    EXPECT_EQ(ReadAcross(cut, many), ErrorCode::kBadInput) << name;
  }
}

TEST_F(ChangingFileTest, NamesModesAndReadersAreNoChange) {
  const std::string content(kBytes, 'x');
  for (const std::string command : {"mv input renamed", "mv other input", "rm input", "ln input link",
                                    "chmod 600 input", "cat input > copy"}) {
    EXPECT_EQ(ReadAcross(command, content), std::nullopt) << command;
    RunShell("cd " + folder_.path() + " && rm -f link renamed copy");
  }
}

TEST_F(ChangingFileTest, APipeHasNoStateThatCouldChange) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto source = OpenSource("/proc/self/fd/" + std::to_string(ends[0]));
  ASSERT_EQ(write(ends[1], "first", 5), 5);
  uint8_t bytes[16];
  EXPECT_EQ(source->Read(bytes, sizeof(bytes)), 5u);
  ASSERT_EQ(write(ends[1], "second", 6), 6);
  EXPECT_EQ(source->Read(bytes, sizeof(bytes)), 6u);
  close(ends[1]);
  EXPECT_EQ(source->Read(bytes, sizeof(bytes)), 0u);
  close(ends[0]);
}

TEST(MappedFileTest, ThrowIfWrittenTellsWritesFromAnotherFileInItsPlace) {
  const TemporaryFolder folder;
  WriteFile(folder.path("file"), "0123456789");
  const MappedFile file(folder.path("file"));
  EXPECT_EQ(CodeOf([&] { file.ThrowIfWritten(); }), std::nullopt);
  ASSERT_EQ(RunShell("cd " + folder.path() + " && cp file new && ln file old && mv new file").exit_status, 0);
  EXPECT_EQ(CodeOf([&] { file.ThrowIfWritten(); }), std::nullopt);
  ASSERT_EQ(
      RunShell("cd " + folder.path() + " && mv old file && printf x | dd of=file conv=notrunc status=none")
          .exit_status,
      0);
  EXPECT_EQ(CodeOf([&] { file.ThrowIfWritten(); }), ErrorCode::kBadInput);
}

TEST(MappedFileDeathTest, AFileThatIsCutWhileItIsReadIsBadInputWithItsName) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TemporaryFolder folder;
  WriteFile(folder.path("a file"), std::string(100'000, 'x'));
  const auto read_after_cut = [&](off_t size_bytes) {
    TellCutMappings();
    const MappedFile file(folder.path("a file"));
    if (truncate(folder.path("a file").c_str(), size_bytes) != 0) _exit(1);
    _exit(std::count(file.bytes().begin(), file.bytes().end(), 'x') == 100'000 ? 0 : 1);
  };
  EXPECT_EXIT(read_after_cut(100'000), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(read_after_cut(50'000), testing::ExitedWithCode(3),
              "error: .*/a file: was cut while it was read\n.*hint: restore the file");
}

TEST(MappedFileDeathTest, ABusErrorOfAnotherCauseIsWhatItWas) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto raise_it = [](int signal_number) {
    signal(SIGBUS, SIG_DFL);
    TellCutMappings();
    raise(signal_number);
    _exit(0);
  };
  EXPECT_EXIT(raise_it(SIGBUS), testing::KilledBySignal(SIGBUS), "");
}

TEST(BufferedReaderTest, PeekDoesNotConsumeAndPositionsCount) {
  BufferedReader reader(MemorySource(AsBytes("abcdefgh")));
  EXPECT_EQ(AsText(reader.Peek(3)), "abc");
  uint8_t out[8];
  EXPECT_EQ(reader.Read(out, 2), 2u);
  EXPECT_EQ(AsText(reader.Peek(100)), "cdefgh");
  EXPECT_EQ(reader.position(), 2u);
  EXPECT_EQ(reader.Read(out, 8), 6u);
  EXPECT_EQ(reader.position(), 8u);
  EXPECT_TRUE(reader.Peek(1).empty());
}

}  // namespace
}  // namespace trainwright
