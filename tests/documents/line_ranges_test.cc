#include "lib/documents/line_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::MessageOf;
using test::TemporaryFolder;
using test::WriteFile;

std::vector<std::string> TextsOf(const std::vector<DocumentInput>& inputs) {
  DocumentReader reader(inputs, uint64_t{1} << 40);
  std::vector<std::string> texts;
  RecordBatch batch;
  while (reader.Next(&batch)) {
    for (const Record& record : batch.records) {
      texts.push_back(batch.bytes.substr(record.begin, record.end - record.begin));
    }
  }
  return texts;
}

TEST(LineRangesTest, AreReadInAnyOrderSortedAndJoined) {
  EXPECT_EQ(ParseLineRanges("7"), (std::vector<LineRange>{{7, 7}}));
  EXPECT_EQ(ParseLineRanges("20-,3,1-2,10-12,11-15"),
            (std::vector<LineRange>{{1, 3}, {10, 15}, {20, UINT64_MAX}}));
  EXPECT_EQ(ParseLineRanges("5-,7,9-"), (std::vector<LineRange>{{5, UINT64_MAX}}));
  for (const char* text :
       {"", ",", "0", "1,", "-3", "3-2", "1-2-3", "a", "1 ", "+1", "99999999999999999999"}) {
    EXPECT_EQ(CodeOf([&] { ParseLineRanges(text); }), ErrorCode::kUsage) << text;
  }
}

TEST(LineRangesTest, AreTheLinesThatGetlineCounts) {
  const TemporaryFolder folder;
  const Rng rng(test::TestSeed(), "line ranges", 0);
  uint64_t draw = 0;
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE("round " + std::to_string(round) + ", seed " + std::to_string(test::TestSeed()));
    std::string content;
    // Some lines are longer than what is read at once.
    const size_t count = rng.Bits(draw++) % 40;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t bits = rng.Bits(draw++);
      content +=
          std::string(bits % 13 == 0 ? 100000 + bits % 400000 : bits % 5, 'a' + static_cast<char>(i % 26));
      if (i + 1 < count || bits % 3 != 0) content += '\n';
    }
    WriteFile(folder.path("text"), content);
    std::vector<std::string> lines;
    std::istringstream stream(content);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);

    std::set<uint64_t> chosen;
    std::string list;
    for (uint64_t i = rng.Bits(draw++) % 6; i > 0 && !lines.empty(); --i) {
      const uint64_t first = 1 + rng.Bits(draw++) % lines.size();
      const bool open = rng.Bits(draw++) % 8 == 0;
      const uint64_t last = open ? lines.size() : first + rng.Bits(draw++) % (lines.size() + 1 - first);
      list += (list.empty() ? "" : ",") + std::to_string(first) + "-" + (open ? "" : std::to_string(last));
      for (uint64_t line = first; line <= last; ++line) chosen.insert(line);
    }
    std::vector<std::string> expected;
    for (const uint64_t line : chosen) expected.push_back(lines[line - 1]);
    if (!list.empty()) {
      EXPECT_EQ(TextsOf(LinesOf({folder.path("text"), InputFormat::kLines}, ParseLineRanges(list))), expected)
          << list;
    }
    for (const std::string& beyond :
         {std::to_string(lines.size() + 1), std::to_string(lines.size() + 1) + "-",
          "1-" + std::to_string(lines.size() + 1)}) {
      const std::string message = MessageOf([&] {
        LinesOf({folder.path("text"), InputFormat::kLines}, ParseLineRanges(beyond));
      });
      EXPECT_NE(message.find("has " + std::to_string(lines.size()) + " line"), std::string::npos)
          << beyond << ": " << message;
    }
  }
}

TEST(LineRangesTest, NeedAFileOfLines) {
  const TemporaryFolder folder;
  WriteFile(folder.path("text"), "a\n");
  const std::vector<LineRange> first = ParseLineRanges("1");
  EXPECT_EQ(CodeOf([&] { LinesOf({"-", InputFormat::kLines}, first); }), ErrorCode::kUsage);
  EXPECT_EQ(CodeOf([&] { LinesOf({folder.path(), InputFormat::kLines}, first); }), ErrorCode::kUsage);
  for (const InputFormat format : {InputFormat::kParagraphs, InputFormat::kNul, InputFormat::kFile}) {
    EXPECT_EQ(CodeOf([&] { LinesOf({folder.path("text"), format}, first); }), ErrorCode::kUsage);
  }
}

}  // namespace
}  // namespace trainwright
