// Documents between blank lines, against an oracle that looks at one line after the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "lib/documents/document_reader.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

constexpr uint64_t kNoLimit = uint64_t{1} << 30;

struct Paragraph {
  std::string text;
  size_t begin = 0;  ///< in the file
};

std::vector<Paragraph> ParagraphsOf(const std::string& content) {
  std::vector<Paragraph> paragraphs;
  bool inside = false;
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    const std::string line = content.substr(begin, end - begin);
    if (line.empty() || (line == "\r" && end < content.size())) {
      inside = false;
    } else if (inside) {
      paragraphs.back().text += "\n" + line;
    } else {
      paragraphs.push_back({line, begin});
      inside = true;
    }
    begin = end + 1;
  }
  return paragraphs;
}

class ParagraphReaderTest : public ::testing::Test {
 protected:
  std::vector<std::string> Read(const std::string& content, uint64_t begin = 0, uint64_t end = UINT64_MAX,
                                uint64_t limit = kNoLimit) {
    test::WriteFile(folder_.path("input"), content);
    DocumentReader reader(
        {{.path = folder_.path("input"), .format = InputFormat::kParagraphs, .begin = begin, .end = end}},
        limit);
    std::vector<std::string> texts;
    RecordBatch batch;
    while (reader.Next(&batch)) {
      for (const Record& record : batch.records) {
        texts.push_back(record.too_long ? "too long"
                                        : batch.bytes.substr(record.begin, record.end - record.begin));
      }
    }
    return texts;
  }
  static std::vector<std::string> TextsOf(const std::vector<Paragraph>& paragraphs) {
    std::vector<std::string> texts;
    for (const Paragraph& paragraph : paragraphs) texts.push_back(paragraph.text);
    return texts;
  }
  const test::TemporaryFolder folder_;
};

using Texts = std::vector<std::string>;

TEST_F(ParagraphReaderTest, BlankLinesStandBetweenDocuments) {
  EXPECT_EQ(Read("\n\na\nb\n\n\n c \n \nd\n"), (Texts{"a\nb", " c \n \nd"}));
  EXPECT_EQ(Read("a\r\nb\r\n\r\n\r\nc\r\n"), (Texts{"a\r\nb\r", "c\r"}));
  EXPECT_EQ(Read("a\n\nb"), (Texts{"a", "b"}));
  for (const char* none : {"", "\n", "\r\n\n\r\n"}) EXPECT_EQ(Read(none), Texts{});
}

TEST_F(ParagraphReaderTest, RandomTextsAreCutAsLineByLine) {
  SCOPED_TRACE(test::TestSeed());
  std::mt19937_64 random(test::TestSeed());
  for (int round = 0; round < 30; ++round) {
    std::string content;
    for (int part = 0; part < 100; ++part) {
      const size_t size = random() % 40 == 0 ? random() % 400'000 : random() % 300;
      content += std::string(size, static_cast<char>('a' + random() % 26));
      for (size_t ends = 1 + random() % 4; ends > 0; --ends) content += random() % 4 == 0 ? "\r\n" : "\n";
    }
    if (random() % 2 == 0) content += "end";
    ASSERT_EQ(Read(content), TextsOf(ParagraphsOf(content))) << "round " << round;
  }
}

TEST_F(ParagraphReaderTest, WhatIsTooLongIsOneDocumentHoweverItIsRead) {
  // Ends of what is read fall on each byte of a mark.
  for (size_t size = DocumentReader::kBatchBytes - 3; size <= DocumentReader::kBatchBytes + 3; ++size) {
    for (const std::string mark : {"\n\n", "\n\r\n", "\n\n\n"}) {
      EXPECT_EQ(Read("a\n\n" + std::string(size - 3, 'x') + mark + "b\n\nc\n", 0, UINT64_MAX, 100),
                (Texts{"a", "too long", "b", "c"}))
          << size;
      EXPECT_EQ(Read(std::string(2 * size, 'x') + mark + "b", 0, UINT64_MAX, 100), (Texts{"too long", "b"}))
          << size;
    }
  }
}

TEST_F(ParagraphReaderTest, WhatIsAsLongAsMayBeIsTakenHoweverItIsRead) {
  // Ends of what is read fall on each byte of a mark; the first mark ends the first document.
  for (size_t size = DocumentReader::kBatchBytes - 4; size <= DocumentReader::kBatchBytes; ++size) {
    for (const std::string mark : {"\n\n", "\n\r\n", "\n"}) {
      const std::string longest(size, 'x'), behind = mark == "\n" ? "" : "b";
      const Texts expected = behind.empty() ? Texts{longest} : Texts{longest, behind};
      EXPECT_EQ(Read(longest + mark + behind, 0, UINT64_MAX, size), expected) << size;
      EXPECT_EQ(Read(longest + mark + behind, 0, UINT64_MAX, size - 1).front(), "too long") << size;
    }
  }
}

TEST_F(ParagraphReaderTest, APartHasTheDocumentsThatBeginInIt) {
  const std::string content = "\na\nb\n\n\nc\r\n\r\nd\n \ne\n\n\r\n\nf\n";
  const std::vector<Paragraph> all = ParagraphsOf(content);
  for (uint64_t begin = 0; begin <= content.size(); ++begin) {
    for (uint64_t end = begin + 1; end <= content.size() + 1; ++end) {
      Texts expected;
      for (const Paragraph& paragraph : all) {
        if (begin <= paragraph.begin && paragraph.begin < end) expected.push_back(paragraph.text);
      }
      ASSERT_EQ(Read(content, begin, end), expected) << begin << " to " << end;
    }
  }
}

}  // namespace
}  // namespace trainwright
