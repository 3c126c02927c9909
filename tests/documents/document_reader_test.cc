#include "lib/documents/document_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::TemporaryFolder;
using test::WriteFile;

constexpr uint64_t kNoLimit = uint64_t{1} << 40;

struct ReadRecord {
  std::string source, text;
  uint64_t number = 0;
  bool too_long = false;
  bool operator==(const ReadRecord&) const = default;
};

std::vector<ReadRecord> ReadAll(const std::vector<DocumentInput>& inputs,
                                uint64_t max_document_bytes = kNoLimit) {
  DocumentReader reader(inputs, max_document_bytes);
  std::vector<ReadRecord> all;
  RecordBatch batch;
  while (reader.Next(&batch)) {
    EXPECT_FALSE(batch.records.empty());
    for (size_t i = 0; i < batch.records.size(); ++i) {
      const Record& record = batch.records[i];
      all.push_back({batch.source,
                     record.too_long ? "" : batch.bytes.substr(record.begin, record.end - record.begin),
                     batch.first_record + i, record.too_long});
    }
  }
  return all;
}

std::vector<std::string> TextsOf(const std::string& content, InputFormat format) {
  const TemporaryFolder folder;
  WriteFile(folder.path("input"), content);
  std::vector<std::string> texts;
  for (const ReadRecord& record : ReadAll({{folder.path("input"), format}})) texts.push_back(record.text);
  return texts;
}

using Texts = std::vector<std::string>;

TEST(DocumentReaderTest, ALastLineNeedsNoNewlineAndAnEmptyLineIsARecord) {
  EXPECT_EQ(TextsOf("a\n\nb", InputFormat::kLines), (Texts{"a", "", "b"}));
  EXPECT_EQ(TextsOf("a\nb\n", InputFormat::kLines), (Texts{"a", "b"}));
  EXPECT_EQ(TextsOf("\n", InputFormat::kLines), (Texts{""}));
  EXPECT_EQ(TextsOf("", InputFormat::kLines), Texts{});
}

TEST(DocumentReaderTest, CarriageReturnsAreText) {
  EXPECT_EQ(TextsOf("a\r\nb\r", InputFormat::kLines), (Texts{"a\r", "b\r"}));
}

TEST(DocumentReaderTest, NulEndedRecordsKeepTheirNewlines) {
  EXPECT_EQ(TextsOf(std::string("a\nb\0c\n\0", 7), InputFormat::kNul), (Texts{"a\nb", "c\n"}));
}

TEST(DocumentReaderTest, BinaryIsNoTextUnlessAsked) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("a.png"), std::string("\x89PNG\r\n\0junk\n", 12));
  const auto read = [&](DocumentInput input) {
    RecordBatch batch;
    DocumentReader reader({std::move(input)}, 1 << 20);
    while (reader.Next(&batch)) {
    }
  };
  const auto guessed = [&] { read({.path = folder.path("a.png"), .guessed = true}); };
  EXPECT_EQ(test::CodeOf(guessed), ErrorCode::kBadInput);
  EXPECT_NE(test::MessageOf(guessed).find("byte 6"), std::string::npos) << test::MessageOf(guessed);
  read({.path = folder.path("a.png"), .format = InputFormat::kLines});
  read({.path = folder.path("a.png"), .format = InputFormat::kFile});
}

/// Reads a file of this content to its end.
void ReadContent(std::string_view content, DocumentInput input) {
  const TemporaryFolder folder;
  input.path = folder.path(input.path);
  WriteFile(input.path, content);
  RecordBatch batch;
  DocumentReader reader({std::move(input)}, 1 << 20);
  while (reader.Next(&batch)) {
  }
}

TEST(DocumentReaderTest, FilesOfOtherToolsAreNoTextUnlessAskedAndAreNamed) {
  struct Other {
    std::string content, problem;
  };
  for (const Other& other : std::vector<Other>{{"\x89TWT\r\n\x1A\n and more", "holds a token stream"},
                                               {"\x50\x2A\x4D\x18size\x89TWS", "holds shards"},
                                               {"ARROW1 and more", "is in Arrow's format"},
                                               {"\xFF\xFF\xFF\xFF and more", "is in Arrow's format"}}) {
    for (const InputFormat format : {InputFormat::kLines, InputFormat::kJsonl}) {
      const std::string message = test::MessageOf(
          [&] { ReadContent(other.content, {.path = "a", .format = format, .guessed = true}); });
      EXPECT_NE(message.find(other.problem), std::string::npos) << message;
    }
    ReadContent(other.content, {.path = "a", .format = InputFormat::kLines});
  }
}

TEST(DocumentReaderTest, Utf16IsNamedWithTheCommandThatConvertsIt) {
  for (const std::string& content :
       {std::string("\xFF\xFEh\0i\0\n\0", 8), std::string("\xFE\xFF\0h\0i\0\n", 8)}) {
    for (const InputFormat format : {InputFormat::kLines, InputFormat::kJsonl}) {
      const std::string message =
          test::MessageOf([&] { ReadContent(content, {.path = "a", .format = format, .guessed = true}); });
      EXPECT_NE(message.find("is UTF-16"), std::string::npos) << message;
      EXPECT_NE(message.find("iconv -f UTF-16 -t UTF-8"), std::string::npos) << message;
    }
    testing::internal::CaptureStderr();
    ReadContent(content, {.path = "a", .format = InputFormat::kFile});
    const std::string warning = testing::internal::GetCapturedStderr();
    EXPECT_NE(warning.find("iconv -f UTF-16 -t UTF-8"), std::string::npos) << warning;
  }
}

TEST(DocumentReaderTest, AHintNamesFormatWhereTheToolHasItAndElseWhatCanBeRead) {
  const auto hint = [](bool has_flag) {
    return test::MessageOf([&] {
      ReadContent("PAR1xyz",
                  {.path = "a.parquet", .format = InputFormat::kJsonl, .has_format_flag = has_flag});
    });
  };
  EXPECT_NE(hint(true).find("--format parquet"), std::string::npos);
  EXPECT_EQ(hint(false).find("--format"), std::string::npos);
  EXPECT_NE(hint(false).find("as JSON lines"), std::string::npos);
}

/// Some 20 KB of lines.
std::string ManyLines() {
  std::string lines;
  for (int i = 0; i < 2000; ++i) lines += "line " + std::to_string(i) + "\n";
  return lines;
}

TEST(DocumentReaderTest, AZeroByteBehindTheBeginningOfATextStopsNoPartOfIt) {
  const TemporaryFolder folder;
  WriteFile(folder.path("input"), ManyLines().insert(9000, 1, '\0'));
  const auto texts_of = [&](uint64_t begin, uint64_t end) {
    Texts texts;
    for (const ReadRecord& record :
         ReadAll({{.path = folder.path("input"), .guessed = true, .begin = begin, .end = end}})) {
      texts.push_back(record.text);
    }
    return texts;
  };
  Texts parts;
  const std::vector<uint64_t> bounds = {0, 8500, 12000, UINT64_MAX};
  for (size_t i = 1; i < bounds.size(); ++i) {
    for (const std::string& text : texts_of(bounds[i - 1], bounds[i])) parts.push_back(text);
  }
  EXPECT_EQ(parts, texts_of(0, UINT64_MAX));
}

TEST(DocumentReaderTest, EveryPartOfABinaryFileIsRefusedAsTheWholeIs) {
  const TemporaryFolder folder;
  WriteFile(folder.path("input"), std::string("\x89PNG\r\n\0junk\n", 12) + ManyLines());
  const auto refusal = [&](uint64_t begin, uint64_t end) {
    return test::MessageOf(
        [&] { ReadAll({{.path = folder.path("input"), .guessed = true, .begin = begin, .end = end}}); });
  };
  const std::string of_whole = refusal(0, UINT64_MAX);
  EXPECT_NE(of_whole.find("byte 6"), std::string::npos) << of_whole;
  EXPECT_EQ(refusal(0, 9000), of_whole);
  EXPECT_EQ(refusal(9000, 12000), of_whole);
  EXPECT_EQ(refusal(12000, UINT64_MAX), of_whole);
}

TEST(DocumentReaderTest, AFileIsOneRecordEvenWhenEmpty) {
  EXPECT_EQ(TextsOf(std::string("a\nb\0c", 5), InputFormat::kFile), (Texts{std::string("a\nb\0c", 5)}));
  EXPECT_EQ(TextsOf("", InputFormat::kFile), (Texts{""}));
}

TEST(DocumentReaderTest, RecordsAreNumberedInEachFileAndNeverSpanTwo) {
  const TemporaryFolder folder;
  WriteFile(folder.path("a"), "1\n2");
  WriteFile(folder.path("b"), "3\n");
  const std::vector<ReadRecord> expected = {
      {folder.path("a"), "1", 1}, {folder.path("a"), "2", 2}, {folder.path("b"), "3", 1}};
  EXPECT_EQ(ReadAll({{folder.path("a"), InputFormat::kLines}, {folder.path("b"), InputFormat::kLines}}),
            expected);
}

// The oracle cuts the whole text at its newlines. Lines are short, empty, or longer than a batch.
TEST(DocumentReaderTest, GivesTheLinesOfRandomTextsWhateverTheirLength) {
  SCOPED_TRACE(test::TestSeed());
  std::mt19937_64 random(test::TestSeed());
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> expected;
    std::string content;
    for (int line = 0; line < 300; ++line) {
      const size_t size = random() % 50 == 0 ? random() % 700000 : random() % 4000;
      expected.push_back(std::string(random() % 7 == 0 ? 0 : size, static_cast<char>('a' + random() % 26)));
      content += expected.back() + "\n";
    }
    ASSERT_EQ(TextsOf(content, InputFormat::kLines), expected) << "round " << round;
  }
}

TEST(DocumentReaderTest, LongRecordsAreMarkedAndTheOthersKeepTheirNumbers) {
  const TemporaryFolder folder;
  const std::string exact(100, 'x'), longer(101, 'y'), huge(1000000, 'z');
  WriteFile(folder.path("a"), exact + "\n" + longer + "\n" + huge + "\nshort\n" + huge);
  const std::string name = folder.path("a");
  const std::vector<ReadRecord> expected = {{name, exact, 1, false},
                                            {name, "", 2, true},
                                            {name, "", 3, true},
                                            {name, "short", 4, false},
                                            {name, "", 5, true}};
  EXPECT_EQ(ReadAll({{name, InputFormat::kLines}}, 100), expected);
}

TEST(DocumentReaderTest, AFileAboveTheLimitIsOneLongRecord) {
  const TemporaryFolder folder;
  WriteFile(folder.path("a"), std::string(1000000, 'z'));
  EXPECT_EQ(ReadAll({{folder.path("a"), InputFormat::kFile}}, 100),
            (std::vector<ReadRecord>{{folder.path("a"), "", 1, true}}));
}

// The gzip and zstd programs are the oracle.
TEST(DocumentReaderTest, CompressedFilesGiveThePlainFilesRecordsAndHash) {
  const TemporaryFolder folder;
  std::string content;
  for (int i = 0; i < 100000; ++i) content += "line " + std::to_string(i) + "\n";
  WriteFile(folder.path("a"), content);
  ASSERT_EQ(test::RunShell("cd '" + folder.path() + "' && gzip -k a && zstd -q a").exit_status, 0);
  DocumentReader plain({{folder.path("a"), InputFormat::kLines}}, kNoLimit);
  RecordBatch ignored;
  while (plain.Next(&ignored)) {
  }
  EXPECT_EQ(plain.input_bytes(), content.size());
  EXPECT_EQ(plain.input_hash(), Xxh3(AsBytes(content)));
  for (const std::string suffix : {".gz", ".zst"}) {
    SCOPED_TRACE(suffix);
    DocumentReader reader({{folder.path("a" + suffix), InputFormat::kLines}}, kNoLimit);
    std::string read;
    RecordBatch batch;
    while (reader.Next(&batch)) read += batch.bytes;
    EXPECT_EQ(read, content);
    EXPECT_EQ(reader.input_hash(), plain.input_hash());
    EXPECT_EQ(reader.stored_bytes_read(), reader.stored_bytes_total());
    EXPECT_LT(reader.stored_bytes_total(), content.size());
  }
}

TEST(DocumentReaderTest, ACutCompressedFileIsBadInput) {
  const TemporaryFolder folder;
  WriteFile(folder.path("a"), std::string(100000, 'a') + "\n");
  ASSERT_EQ(
      test::RunShell("cd '" + folder.path() + "' && zstd -q a && head -c 15 a.zst > cut.zst").exit_status, 0);
  EXPECT_EQ(test::CodeOf([&] {
              ReadAll({{folder.path("cut.zst"), InputFormat::kLines}});
            }),
            ErrorCode::kBadInput);
}

TEST(DocumentReaderTest, AMissingFileIsAnIoError) {
  EXPECT_EQ(test::CodeOf([] { ReadAll({{"/nonexistent/a", InputFormat::kLines}}); }), ErrorCode::kIo);
}

TEST(InputFormatTest, IsGuessedFromTheNameAndTheKeys) {
  for (const char* name : {"a.jsonl", "a.json", "dir/a.ndjson", "a.jsonl.gz", "a.jsonl.zst"}) {
    EXPECT_EQ(GuessInputFormat(name, false), InputFormat::kJsonl) << name;
  }
  for (const char* name : {"-", "a.txt", "a.txt.gz", "jsonl", "a.jsonl.bak"}) {
    EXPECT_EQ(GuessInputFormat(name, false), InputFormat::kLines) << name;
    EXPECT_EQ(GuessInputFormat(name, true), InputFormat::kJsonl) << name;
  }
}

TEST(InputFormatTest, EveryFormatIsParsedByItsName) {
  for (const InputFormat format : {InputFormat::kLines, InputFormat::kJsonl, InputFormat::kParagraphs,
                                   InputFormat::kNul, InputFormat::kFile, InputFormat::kParquet}) {
    EXPECT_EQ(ParseInputFormat(NameOf(format)), format);
  }
  EXPECT_EQ(test::CodeOf([] { ParseInputFormat("csv"); }), ErrorCode::kUsage);
}

/// Reads some, calls `change`, and reads on to the end.
std::optional<ErrorCode> ReadAcross(const DocumentInput& input, const std::function<void()>& change) {
  DocumentReader reader({input}, kNoLimit);
  RecordBatch batch;
  EXPECT_TRUE(reader.Next(&batch));
  change();
  return test::CodeOf([&] {
    while (reader.Next(&batch)) continue;
  });
}

TEST(DocumentReaderTest, AFileThatIsWrittenToWhileItIsReadIsBadInput) {
  const TemporaryFolder folder;
  const std::string path = folder.path("input");
  std::string lines, records;
  for (int i = 0; i < 400'000; ++i) {
    lines += "line " + std::to_string(i) + "\n";
    records += "record " + std::to_string(i) + '\0';
  }
  const auto write = [&](const std::string& content) { return [=] { WriteFile(path, content); }; };
  const auto cut = [&] { std::filesystem::resize_file(path, lines.size() / 2); };
  for (const uint64_t end :
       {UINT64_MAX, lines.size() * 3 / 4}) {  // all, and a slice that ends before the file
    const DocumentInput input = {.path = path, .format = InputFormat::kLines, .begin = 0, .end = end};
    WriteFile(path, lines);
    EXPECT_EQ(ReadAcross(input, cut), ErrorCode::kBadInput);
    WriteFile(path, lines);
    EXPECT_EQ(ReadAcross(input, write(lines + "more\n")), ErrorCode::kBadInput);
    WriteFile(path, lines);
    EXPECT_EQ(ReadAcross(input, write(std::string(lines.size(), '\n'))), ErrorCode::kBadInput);
    WriteFile(path, lines);
    EXPECT_EQ(ReadAcross(input, [] {}), std::nullopt);
  }
  WriteFile(path, records);
  EXPECT_EQ(ReadAcross({path, InputFormat::kNul}, cut), ErrorCode::kBadInput);
}

TEST(DocumentReaderTest, AWriteBehindTheLastReadIsToldBeforeTheSeal) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b"}) WriteFile(folder.path(name), "text\n");
  DocumentReader reader({{folder.path("a")}, {folder.path("b")}}, kNoLimit);
  RecordBatch batch;
  while (reader.Next(&batch)) continue;
  EXPECT_EQ(test::CodeOf([&] { reader.ThrowIfWritten(); }), std::nullopt);
  std::filesystem::rename(folder.path("b"), folder.path("c"));
  WriteFile(folder.path("b"), "another file\n");
  EXPECT_EQ(test::CodeOf([&] { reader.ThrowIfWritten(); }), std::nullopt);
  WriteFile(folder.path("a"), "text\nand more\n");
  EXPECT_EQ(test::CodeOf([&] { reader.ThrowIfWritten(); }), ErrorCode::kBadInput);
}

}  // namespace
}  // namespace trainwright
