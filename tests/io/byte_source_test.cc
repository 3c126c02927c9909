#include "lib/io/byte_source.h"

#include <gtest/gtest.h>

#include "lib/base/rng.h"
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
