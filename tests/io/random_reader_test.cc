#include "lib/io/random_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/io/byte_source.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::MessageOf;

TEST(RandomReaderTest, ReadsAnyPartAndCountsWhatItRead) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("file"), "0123456789");
  const std::string text = "0123456789";
  for (const auto& reader : {OpenRandomReader(folder.path("file")), MemoryRandomReader(AsBytes(text))}) {
    EXPECT_EQ(reader->size_bytes(), 10u);
    EXPECT_EQ(AsText(reader->ReadAt(7, 3)), "789");
    EXPECT_EQ(AsText(reader->ReadAt(0, 2)), "01");
    EXPECT_TRUE(reader->ReadAt(10, 0).empty());
    EXPECT_EQ(reader->bytes_read(), 5u);
  }
}

TEST(RandomReaderTest, WhatLiesBehindTheEndIsBadInputAndCostsNoMemory) {
  const std::string text = "0123456789";
  const auto reader = MemoryRandomReader(AsBytes(text));
  EXPECT_EQ(CodeOf([&] { reader->ReadAt(8, 3); }), ErrorCode::kBadInput);
  EXPECT_EQ(CodeOf([&] { reader->ReadAt(11, 1); }), ErrorCode::kBadInput);
  EXPECT_EQ(CodeOf([&] { reader->ReadAt(1, UINT64_MAX); }), ErrorCode::kBadInput);
}

TEST(RandomReaderTest, AFileThatIsCutMeanwhileIsAnErrorAndNoSignal) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("file"), std::string(100'000, 'x'));
  const auto reader = OpenRandomReader(folder.path("file"));
  std::vector<uint8_t> bytes(100'000);
  std::filesystem::resize_file(folder.path("file"), 10);
  EXPECT_EQ(CodeOf([&] { reader->ReadAt(0, std::span<uint8_t>(bytes)); }), ErrorCode::kBadInput);
}

TEST(RandomReaderTest, AFileThatIsWrittenToMeanwhileIsBadInput) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("file"), std::string(100'000, 'x'));
  const auto reader = OpenRandomReader(folder.path("file"));
  EXPECT_EQ(reader->ReadAt(0, 10).size(), 10u);
  test::WriteFile(folder.path("file"), std::string(100'000, 'y'));
  EXPECT_EQ(CodeOf([&] { reader->ReadAt(50'000, 10); }), ErrorCode::kBadInput);
}

TEST(RandomReaderTest, WhatIsNoRegularFileIsRefused) {
  EXPECT_EQ(CodeOf([] { OpenRandomReader("/dev/zero"); }), ErrorCode::kIo);
  EXPECT_EQ(CodeOf([] { OpenRandomReader("/"); }), ErrorCode::kIo);
  EXPECT_THAT(MessageOf([] { OpenRandomReader("/no/such/file"); }), testing::HasSubstr("/no/such/file"));
}

TEST(SpoolTest, TakesWhatIsAskedForAndNoMore) {
  std::string text(3'000'000, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * i >> 8);
  BufferedReader source(MemorySource(AsBytes(text), "source"));
  EXPECT_EQ(AsText(source.Peek(5)), text.substr(0, 5));
  const auto first = Spool(&source, 2'500'000);
  EXPECT_EQ(source.position(), 2'500'000u);
  EXPECT_EQ(first->size_bytes(), 2'500'000u);
  EXPECT_EQ(first->name(), "source");
  EXPECT_EQ(AsText(first->ReadAt(1'000'001, 1'400'000)), text.substr(1'000'001, 1'400'000));
  EXPECT_EQ(CodeOf([&] { first->ReadAt(2'499'999, 2); }), ErrorCode::kBadInput);
  const auto rest = Spool(&source, UINT64_MAX);
  EXPECT_EQ(AsText(rest->ReadAt(0, rest->size_bytes())), text.substr(2'500'000));
  EXPECT_EQ(Spool(&source, 10)->size_bytes(), 0u);
}

}  // namespace
}  // namespace trainwright
