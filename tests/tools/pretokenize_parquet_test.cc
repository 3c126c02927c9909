// pretokenize with parquet files that pyarrow wrote (tests/documents/make_parquet_fixtures.py), as processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "tests/support/paths.h"
#include "tests/support/tool_test.h"

namespace trainwright::test {
namespace {

using testing::HasSubstr;

class PretokenizeParquetTest : public ToolTest {
 protected:
  void SetUp() override {
    unsetenv("TRAINWRIGHT_PARQUET_PLUGIN");
    const std::string plugin = TRAINWRIGHT_BIN_DIR "/../libexec/trainwright/libtrainwright_parquet.so";
    if (!std::filesystem::exists(plugin)) {
      GTEST_SKIP()
          << "NOT RUN: this build has no parquet plugin (scripts/fetch_arrow.sh fetches what it needs)";
    }
  }
  ProcessResult Shell(const std::string& script) {
    return ToolTest::Shell("export F=$FIXTURES/documents/fixtures/parquet\n" + script);
  }
};

/// The same without a plugin.
class PretokenizeWithoutParquetTest : public PretokenizeParquetTest {
 protected:
  void SetUp() override { unsetenv("TRAINWRIGHT_PARQUET_PLUGIN"); }
};

/// What pyarrow read in each file, as JSON lines.
std::map<std::string, std::string> LinesOfFiles() {
  std::map<std::string, std::string> lines;
  std::istringstream rows(ReadFile(Fixture("documents/fixtures/parquet/rows.jsonl")));
  for (std::string line; std::getline(rows, line);) {
    const auto row = nlohmann::json::parse(line);
    lines[row["file"]] += nlohmann::json{{"text", row["text"]}}.dump() + "\n";
  }
  return lines;
}

TEST_F(PretokenizeParquetTest, EveryKindOfFileGivesTheIdsOfTheSameTextAsJsonLines) {
  const auto files = LinesOfFiles();
  ASSERT_EQ(files.size(), 13u);
  for (const auto& [name, lines] : files) {
    WriteFile(folder_.path("same.jsonl"), lines);
    const std::string key = name == "nested.parquet" ? "message.content" : "text";
    const ProcessResult result = Shell("pretokenize --on-error skip --to jsonl --summary p.json --key " +
                                       key + " \"$F/" + name + R"(" -o p.ids
        pretokenize --on-error skip --to jsonl --summary j.json same.jsonl -o j.ids)");
    ASSERT_EQ(result.exit_status, 0) << name << result.standard_error;
    EXPECT_EQ(ReadFile(folder_.path("p.ids")), ReadFile(folder_.path("j.ids"))) << name;
    const auto parquet = nlohmann::json::parse(ReadFile(folder_.path("p.json")));
    const auto json = nlohmann::json::parse(ReadFile(folder_.path("j.json")));
    for (const char* count : {"documents", "empty_documents", "skipped_by_reason"}) {
      EXPECT_EQ(parquet.at(count), json.at(count)) << name << " " << count;
    }
  }
}

TEST_F(PretokenizeParquetTest, TheBytesDoNotDependOnThreadsAndSlicesOfRowsMakeUpTheWhole) {
  const ProcessResult result = Shell(R"(
    run() { pretokenize -q --on-error skip "$@" "$F/nulls.parquet" "$F/no_rows.parquet" "$F/small_pages.parquet"; }
    run --threads 1 > one; run --threads 3 > three; cmp one three
    pretokenize -q --decode one > whole
    for n in 1 2 3 7 50; do
      for k in $(seq $n); do run --slice $k/$n | pretokenize -q --decode; done > parts
      cmp whole parts && [ -s parts ] || echo "differs: $n"
    done)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "");
}

TEST_F(PretokenizeParquetTest, SeveralColumnsAreJoinedAsOfJsonLines) {
  const ProcessResult result = Shell(
      R"(pretokenize -q --key title --key text --limit 1 "$F/binary.parquet" | pretokenize -q --decode | head -n 1
         pretokenize -q --key title --limit 1 --format parquet "$F/binary.parquet" | pretokenize -q --decode)");
  EXPECT_EQ(result.standard_output, "title 0\ntitle 0\n") << result.standard_error;
}

TEST_F(PretokenizeParquetTest, ABadDocumentIsNamedByFileRowAndColumnAndCanBeSkipped) {
  const auto expect = [&](const std::string& arguments, const std::string& words, const std::string& reason,
                          int skipped) {
    const ProcessResult failed = Shell("pretokenize " + arguments + " -o out.tok");
    EXPECT_EQ(failed.exit_status, 3) << arguments;
    EXPECT_THAT(failed.standard_error, HasSubstr(words)) << arguments;
    EXPECT_FALSE(std::filesystem::exists(folder_.path("out.tok"))) << arguments;
    const ProcessResult went_on =
        Shell("pretokenize -q --on-error skip --summary s.json " + arguments + " -o kept.tok");
    EXPECT_EQ(went_on.exit_status, 0) << arguments << went_on.standard_error;
    const auto summary = nlohmann::json::parse(ReadFile(folder_.path("s.json")));
    EXPECT_EQ(summary.at("skipped_by_reason").at(reason), skipped) << arguments;
  };
  expect("$F/nulls.parquet", "nulls.parquet: column \"text\" is null, not a string (row 4)", "not_a_string",
         14);
  expect("$F/nulls.parquet --key body", "no column \"body\" (row 1)", "missing_key", 80);
  expect("$F/nulls.parquet --key body", "its columns: id, text, title", "missing_key", 80);
  expect("$F/nulls.parquet --key id", "column \"id\" is of type INT64, not text (row 1)", "not_a_string", 80);
  expect("$F/nested.parquet --key message", "column \"message\" is a struct", "not_a_string", 50);
  expect("$F/nested.parquet --key tags", "column \"tags\" is a list", "not_a_string", 50);
  expect("$F/binary.parquet --key title --max-document 7B", "longer than --max-document (row 11)", "too_long",
         30);
}

TEST_F(PretokenizeParquetTest, DamagedFilesAreBadInputAndNeverACrash) {
  const std::string whole = ReadFile(Fixture("documents/fixtures/parquet/small_pages.parquet"));
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE("seed " + std::to_string(TestSeed()) + " round " + std::to_string(round));
    std::string damaged = whole;
    const bool cut = round % 2 == 0;
    if (cut) {
      damaged.resize(round == 0 ? 0 : random() % whole.size());
    } else {
      damaged[random() % whole.size()] ^= static_cast<char>(1 << (random() % 8));
    }
    WriteFile(folder_.path("d.parquet"), damaged);
    const ProcessResult result = Shell("rm -f out.tok; pretokenize -q --on-error skip d.parquet -o out.tok");
    // A flip in what no checksum covers, as a name or a statistic, may leave the text whole.
    EXPECT_TRUE(result.exit_status == 3 || (!cut && result.exit_status == 0))
        << result.exit_status << result.standard_error;
    EXPECT_EQ(std::filesystem::exists(folder_.path("out.tok")), result.exit_status == 0);
    if (result.exit_status == 3) {
      EXPECT_THAT(result.standard_error, HasSubstr("d.parquet: "));
    }
  }
}

TEST_F(PretokenizeParquetTest, WhatParquetCannotBeReadForIsRefusedByName) {
  const auto expect = [&](const std::string& command, int status, const std::string& words) {
    const ProcessResult result = Shell(command);
    EXPECT_EQ(result.exit_status, status) << command << result.standard_error;
    EXPECT_THAT(result.standard_error, HasSubstr(words)) << command;
  };
  expect("pretokenize --records sft $F/none.parquet -o x", 2, "JSON lines first");
  expect("pretokenize --records contrastive $F/none.parquet -o x", 2, "JSON lines first");
  expect("pretokenize --format parquet -o x < $F/none.parquet", 2, "standard input");
  expect("pretokenize -o x < $F/none.parquet", 3, "--format parquet");
  expect("echo text > no.parquet; pretokenize no.parquet -o x", 3, "no parquet file");
  expect(
      "pretokenize --tokenizer \"$F/../../../../examples/data/mistral-v1.model\" $F/invalid_utf8.parquet -o "
      "x",
      3, "row 2");
}

TEST_F(PretokenizeWithoutParquetTest, AParquetFileIsRefusedBeforeAnythingIsWrittenWithTheWayToGetIt) {
  const ProcessResult result = Shell(
      "mkdir bin; cp $(command -v pretokenize) bin/; echo text > a.txt; bin/pretokenize a.txt "
      "$F/none.parquet");
  EXPECT_EQ(result.exit_status, 2);
  EXPECT_EQ(result.standard_output, "");
  EXPECT_THAT(result.standard_error, HasSubstr("none.parquet: is a parquet file"));
  EXPECT_THAT(result.standard_error, HasSubstr("scripts/fetch_arrow.sh"));
}

TEST_F(PretokenizeWithoutParquetTest, TheToolIsNotLinkedWithArrow) {
  const ProcessResult result = Shell("ldd \"$(command -v pretokenize)\"");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output, HasSubstr("libc.so"));
  EXPECT_THAT(result.standard_output, testing::Not(testing::AnyOf(HasSubstr("arrow"), HasSubstr("parquet"))));
}

}  // namespace
}  // namespace trainwright::test
