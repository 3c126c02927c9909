#include "lib/documents/document_text.h"

#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace trainwright {
namespace {

RecordBatch BatchOf(const std::string& record, InputFormat format, uint64_t number) {
  return {.source = "input.txt",
          .format = format,
          .first_record = number,
          .bytes = record,
          .records = {{0, record.size()}}};
}

TEST(DocumentTextTest, BytesNeedNotBeUtf8WhereTheTokenizerTakesAny) {
  DocumentText reader({.require_utf8 = false});
  const RecordBatch batch = BatchOf("a\xFF", InputFormat::kLines, 1);
  std::string_view text;
  EXPECT_FALSE(reader.Read(batch, 0, &text).has_value());
  EXPECT_EQ(text, "a\xFF");
}

TEST(DocumentTextTest, ReplacesBadBytesWhenAsked) {
  DocumentText reader({.replace_invalid_utf8 = true});
  std::string_view text;
  const RecordBatch line = BatchOf("a\xFF\xFE z", InputFormat::kLines, 1);
  EXPECT_FALSE(reader.Read(line, 0, &text).has_value());
  EXPECT_EQ(text, "a\xEF\xBF\xBD\xEF\xBF\xBD z");
  EXPECT_EQ(reader.replaced_bytes(), 2u);
  const RecordBatch json = BatchOf("{\"text\": \"a\xFF\"}", InputFormat::kJsonl, 1);
  EXPECT_FALSE(reader.Read(json, 0, &text).has_value());
  EXPECT_EQ(text, "a\xEF\xBF\xBD");
  EXPECT_EQ(reader.replaced_bytes(), 1u);
}

TEST(DocumentTextTest, AByteOrderMarkIsTextInLinesAndNoneInJson) {
  DocumentText reader({});
  std::string_view text;
  const RecordBatch line = BatchOf("\xEF\xBB\xBFx", InputFormat::kLines, 1);
  EXPECT_FALSE(reader.Read(line, 0, &text).has_value());
  EXPECT_EQ(text, "\xEF\xBB\xBFx");
  const RecordBatch first = BatchOf("\xEF\xBB\xBF{\"text\": \"x\"}", InputFormat::kJsonl, 1);
  EXPECT_FALSE(reader.Read(first, 0, &text).has_value());
  EXPECT_EQ(text, "x");
  const RecordBatch second = BatchOf("\xEF\xBB\xBF{\"text\": \"x\"}", InputFormat::kJsonl, 2);
  EXPECT_TRUE(reader.Read(second, 0, &text).has_value());
}

TEST(DocumentTextTest, ABlankJsonLineIsAnEmptyDocument) {
  DocumentText reader({});
  std::string_view text = "before";
  const RecordBatch batch = BatchOf(" \t\r", InputFormat::kJsonl, 3);
  EXPECT_FALSE(reader.Read(batch, 0, &text).has_value());
  EXPECT_EQ(text, "");
}

TEST(DocumentTextTest, ProblemsNameTheFileTheLineAndTheFlagThatHelps) {
  const struct {
    std::string record;
    InputFormat format;
    std::string expected;
  } cases[] = {
      {"ok \xFF", InputFormat::kLines,
       "input.txt: not valid UTF-8 (line 41, byte 3) | --invalid-utf8 replace"},
      {"ok \xFF", InputFormat::kNul,
       "input.txt: not valid UTF-8 (document 41, byte 3) | --invalid-utf8 replace"},
      {"ok \xFF", InputFormat::kFile, "input.txt: not valid UTF-8 (byte 3) | --invalid-utf8 replace"},
      {"{\"text\": \"\xFF\"}", InputFormat::kJsonl,
       "input.txt: JSON that is not valid UTF-8 (line 41, byte 10) | --invalid-utf8"},
      {"{\"text\": ", InputFormat::kJsonl, "(line 41) | --on-error skip"},
      {"{\"body\": \"\"}", InputFormat::kJsonl, "input.txt: no key \"text\" (line 41) | --key"},
      {"{\"text\": 1}", InputFormat::kJsonl, "is a number, not a string (line 41) | --key"},
  };
  const DocumentFlags all = {.on_error = true, .invalid_utf8 = true, .max_document = true};
  DocumentText reader({});
  for (const auto& test_case : cases) {
    const RecordBatch batch = BatchOf(test_case.record, test_case.format, 41);
    std::string_view text;
    const auto problem = reader.Read(batch, 0, &text);
    ASSERT_TRUE(problem.has_value()) << test_case.expected;
    const auto raise = [&] { throw ErrorOf(*problem, batch, 0, all); };
    EXPECT_EQ(test::CodeOf(raise), ErrorCode::kBadInput);
    const std::string message = test::MessageOf(raise);
    EXPECT_NE(message.find(test_case.expected), std::string::npos) << message;
    EXPECT_NE(message.find("--on-error skip"), std::string::npos) << message;
    const Error bare = ErrorOf(*problem, batch, 0, {});
    EXPECT_EQ(bare.hint().empty(), bare.hint().find("--key") == std::string::npos) << bare.hint();
    EXPECT_EQ(bare.hint().find("--on-error"), std::string::npos) << bare.hint();
    EXPECT_EQ(bare.hint().find("--invalid-utf8"), std::string::npos) << bare.hint();
  }
}

TEST(DocumentTextTest, ALongRecordIsAProblem) {
  DocumentText reader({});
  RecordBatch batch = BatchOf("", InputFormat::kLines, 1);
  batch.records[0].too_long = true;
  std::string_view text;
  const auto problem = reader.Read(batch, 0, &text);
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->reason, SkipReason::kTooLong);
  EXPECT_EQ(ErrorOf(*problem, batch, 0, {.max_document = true}).hint(), "--max-document raises the limit");
  EXPECT_EQ(std::string(ErrorOf(*problem, batch, 0, {}).what()).find("--max-document"), std::string::npos);
}

}  // namespace
}  // namespace trainwright
