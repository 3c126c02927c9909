#include "lib/documents/record_reader.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/support.h"

namespace trainwright {
namespace {

/// Records with their places.
using PlacedRecords = std::vector<std::pair<std::string, std::string>>;

PlacedRecords PlacedRecordsOf(const std::string& content, bool only_filled) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("records.jsonl"), content);
  RecordReader reader(folder.path("records.jsonl"), InputFormat::kJsonl);
  PlacedRecords found;
  while (const auto record = only_filled ? reader.NextFilled() : reader.Next()) {
    EXPECT_EQ(reader.place().file, folder.path("records.jsonl"));
    found.emplace_back(reader.place().line, *record);
  }
  EXPECT_EQ(reader.Next(), std::nullopt);
  return found;
}

TEST(RecordReaderTest, GivesEveryRecordWithItsLine) {
  EXPECT_EQ(PlacedRecordsOf("\xEF\xBB\xBF{}\n\n[1]", /*only_filled=*/false),
            (PlacedRecords{{"line 1", "{}"}, {"line 2", ""}, {"line 3", "[1]"}}));
}

TEST(RecordReaderTest, LinesOfWhiteSpaceKeepTheirNumbersWhereTheyArePassedOver) {
  EXPECT_EQ(PlacedRecordsOf("\na\n \t\r\nb\n\n", /*only_filled=*/true),
            (PlacedRecords{{"line 2", "a"}, {"line 4", "b"}}));
}

TEST(RecordReaderTest, RecordsOfManyBatchesComeInTheirOrder) {
  constexpr size_t kRecords = 40000;
  std::string content;
  PlacedRecords wanted;
  for (size_t i = 1; i <= kRecords; ++i) {
    const std::string record = "record number " + std::to_string(i);
    content += record + "\n";
    wanted.emplace_back("line " + std::to_string(i), record);
  }
  ASSERT_GT(content.size(), 2 * DocumentReader::kBatchBytes);
  EXPECT_EQ(PlacedRecordsOf(content, /*only_filled=*/false), wanted);
}

TEST(RecordReaderTest, AFileThatIsWrittenToWhileItIsReadIsBadInput) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("lines"), "a\n");
  RecordReader reader(folder.path("lines"), InputFormat::kLines);
  ASSERT_EQ(reader.Next(), "a");
  test::WriteFile(folder.path("lines"), "a\nb\n");
  EXPECT_EQ(test::CodeOf([&] {
              while (reader.Next()) continue;
            }),
            ErrorCode::kBadInput);
}

}  // namespace
}  // namespace trainwright
