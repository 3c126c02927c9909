// pretokenize with folders, patterns, lists and slices, as processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tool_test.h"

namespace trainwright::test {
namespace {

using PretokenizeInputsTest = ToolTest;

/// Files whose text is their path.
constexpr char kTree[] = R"(
  mkdir -p d/b/c d/a .hidden d/.h
  for f in d/z.txt d/a/1.jsonl d/a-1.txt d/b/c/2.txt d/b/x.bin d/.h/3.txt d/.4.txt; do
    case $f in *.jsonl) echo "{\"text\": \"$f\"}" > $f ;; *) echo "$f" > $f ;; esac
  done
  zstd -q --rm d/b/c/2.txt
  ln -s .. d/b/loop; ln -s "$PWD/d/a" d/link
)";

TEST_F(PretokenizeInputsTest, AFolderGivesItsKnownFilesInByteOrderOfTheirPathsWithoutLoops) {
  const ProcessResult result = Shell(std::string(kTree) + "pretokenize -q d | pretokenize -q --decode");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "d/a-1.txt\nd/a/1.jsonl\nd/b/c/2.txt\nd/a/1.jsonl\nd/z.txt\n");
}

TEST_F(PretokenizeInputsTest, PatternsAreExpandedByTheToolAndListsAreReadInTheirOrder) {
  const ProcessResult result = Shell(std::string(kTree) + R"(
    pretokenize -q 'd/*.txt' 'd/**/2.*' | pretokenize -q --decode
    printf 'd/z.txt\nd/a/1.jsonl\n' > list; pretokenize -q --files-from list | pretokenize -q --decode
    printf 'd/z.txt\0d/a-1.txt' | pretokenize -q --files-from - | pretokenize -q --decode
    echo plain > 'odd[1].txt'; pretokenize -q 'odd[1].txt' | pretokenize -q --decode)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output,
            "d/a-1.txt\nd/z.txt\nd/b/c/2.txt\n"
            "d/z.txt\nd/a/1.jsonl\n"
            "d/z.txt\nd/a-1.txt\n"
            "plain\n");
}

TEST_F(PretokenizeInputsTest, WhatGivesNoFileIsRefusedWithAHintAndWritesNothing) {
  const auto expect = [&](const std::string& arguments, int status, const std::string& words) {
    const ProcessResult result = Shell("pretokenize " + arguments + " -o out.tok < /dev/null");
    EXPECT_EQ(result.exit_status, status) << arguments;
    EXPECT_THAT(result.standard_error, testing::HasSubstr(words)) << arguments;
    EXPECT_FALSE(std::filesystem::exists(folder_.path("out.tok"))) << arguments;
  };
  Shell("mkdir empty other; touch other/a.bin list; echo missing.txt > missing.list");
  expect("empty", 2, "without a file");
  expect("other", 2, "--format");
  expect("'*.jsonl'", 2, "matches no file");
  expect("--files-from list", 2, "list without a file");
  expect("--files-from -", 2, "list without a file");
  expect("--files-from missing.list", 4, "missing.txt");
  expect("missing.txt", 4, "missing.txt");
  expect("--slice 3/2 list", 2, "--slice");
  expect("--slice 0/2 list", 2, "--slice");
  expect("--slice 1of2 list", 2, "--slice");
  expect("--slice 1/2", 2, "standard input");
  expect("--slice 1/2 --limit 3 list", 2, "--limit");
  expect("--holdout 1/0 list", 2, "--holdout");
  expect("--holdout 2/2 list", 2, "--holdout");
}

TEST_F(PretokenizeInputsTest, NotesOfADataSetAreNoDocumentsOfItsFolderUnlessTheyAreNamed) {
  const ProcessResult result = Shell(R"(
    mkdir -p d/data; echo card > d/README.md; echo notes > d/NOTES.md
    printf '{\n  "a": 1\n}\n' | tee d/dataset_infos.json d/dataset_info.json d/data/state.json > d/config.json
    echo '{"text": "row"}' > d/data/train.jsonl
    pretokenize d | pretokenize -q --decode; pretokenize -q --key text d/data | pretokenize -q --decode
    pretokenize -q d/README.md 'd/R*' | pretokenize -q --decode)");
  EXPECT_EQ(result.standard_output, "notes\nrow\nrow\ncard\ncard\n") << result.standard_error;
  EXPECT_THAT(result.standard_error,
              testing::HasSubstr("skipped 5 files that may describe a data set, and are read where they "
                                 "are named: README.md, config.json, dataset_info.json, dataset_infos.json, "
                                 "state.json"));
}

TEST_F(PretokenizeInputsTest, ArrowIsNamedAsNotReadWithTheWayOut) {
  const ProcessResult saved = Shell(
      "mkdir d; printf '\\377\\377\\377\\377\\0' > d/data-00000-of-00001.arrow; echo '{' > d/state.json\n"
      "pretokenize -q d -o out.tok; echo $?; pretokenize -q d/data-00000-of-00001.arrow -o out.tok; echo $?");
  EXPECT_EQ(saved.standard_output, "2\n3\n");
  EXPECT_THAT(saved.standard_error, testing::HasSubstr("d: holds 1 .arrow file, which this tool does not"));
  EXPECT_THAT(saved.standard_error, testing::HasSubstr("is in Arrow's format"));
  EXPECT_THAT(saved.standard_error, testing::HasSubstr("Dataset.to_parquet"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("out.tok")));
  const ProcessResult beside = Shell("echo text > d/a.txt; pretokenize d | pretokenize -q --decode");
  EXPECT_EQ(beside.standard_output, "text\n");
  EXPECT_THAT(beside.standard_error, testing::HasSubstr("d: does not read 1 .arrow file"));
}

TEST_F(PretokenizeInputsTest, ALinkToNothingIsAFileThatCannotBeRead) {
  const ProcessResult result = Shell(
      "mkdir d; echo a > d/a.txt; ln -s gone d/b.txt; ln -s gone d/c.bin\n"
      "pretokenize d -o out.tok; echo $?; pretokenize 'd/*.txt' -o out.tok; echo $?\n"
      "rm d/b.txt; pretokenize d -o out.tok; echo $?");
  EXPECT_EQ(result.standard_output, "4\n4\n0\n");
  EXPECT_THAT(result.standard_error, testing::HasSubstr("d/b.txt: open failed: No such file"));
  EXPECT_THAT(result.standard_error, testing::HasSubstr("d: skipped 1 files whose names imply no format"));
}

TEST_F(PretokenizeInputsTest, ASignalEndsTheWaitForANamedPipe) {
  const ProcessResult result =
      Shell("mkfifo p; timeout --preserve-status -s TERM 0.3 pretokenize p -o out.tok");
  EXPECT_EQ(result.exit_status, 143) << result.standard_error;
}

TEST_F(PretokenizeInputsTest, SlicesInOrderAreTheWholeDocumentForDocumentAndShardForShard) {
  // Plain, compressed, with long and empty lines, without a last newline, of several formats, and empty
  // files.
  const ProcessResult result = Shell(R"(
    mkdir in
    seq 1 700 > in/a.txt; printf 'one\n\n\n\nlast without a newline' > in/b.txt; : > in/c.txt
    for i in $(seq 90); do printf '{"text": "%0*d"}\n' $((i * i % 397 + 1)) $i; done | tee in/d.jsonl | gzip > in/e.jsonl.gz
    seq 5000 5900 | zstd -q > in/f.txt.zst; : > in/g.txt
    pretokenize -q in -o whole.tok && pretokenize -q --decode whole.tok > whole.txt
    pack -q --chunk 512 -o whole.tws whole.tok
    for n in 1 2 3 7 64; do
      parts=
      for k in $(seq $n); do pretokenize -q --slice $k/$n in -o $n.$k.tok || exit 1; parts="$parts $n.$k.tok"; done
      pretokenize -q --decode $parts | cmp - whole.txt || exit 2
      pack -q --chunk 512 $parts | cmp - whole.tws || exit 3
    done
    : > empty.txt
    for k in 1 2; do pretokenize -q --slice $k/2 empty.txt -o empty.$k.tok || exit 4; done
    for k in $(seq 9); do pretokenize -q --format file --slice $k/9 in/a.txt in/b.txt | pretokenize -q --decode; done |
      cmp - <(pretokenize -q --format file in/a.txt in/b.txt | pretokenize -q --decode) || exit 5)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
}

TEST_F(PretokenizeInputsTest, TheReportLineNamesEveryReasonForLeavingADocumentOut) {
  const ProcessResult result = Shell(R"(
    printf '%s\n' '{"text": "fine"}' '{"text": "too many characters"}' '{"text": "\u00e9\u00e9\u00e9\u00e9\u00e9"}' '{"text": ""}' \
      '{"other": "x"}' '{"text": 1}' 'no json' > in.jsonl
    pretokenize --max-chars 10 --max-record-tokens 8 --on-error skip in.jsonl -o out.tok)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  for (const char* reason :
       {"1 empty document", "1 document (over_max_chars)", "1 document (over_max_record_tokens)",
        "1 document (missing_key)", "1 document (not_a_string)", "1 document (bad_json)"}) {
    EXPECT_THAT(result.standard_error, testing::HasSubstr(reason));
  }
}

TEST_F(PretokenizeInputsTest, AParquetFileIsNeverReadAsLines) {
  const ProcessResult result =
      Shell("printf 'PAR1xyz\\nPAR1' > a.parquet; pretokenize --format lines a.parquet -o out.tok");
  EXPECT_EQ(result.exit_status, 3);
  EXPECT_THAT(result.standard_error, testing::HasSubstr("parquet"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("out.tok")));
}

TEST_F(PretokenizeInputsTest, AHoldoutMayBeGivenAsAFraction) {
  const ProcessResult result = Shell(R"(
    seq 3000 > in.txt
    pretokenize -q --holdout 1/20 --holdout-output h1 -o t1 in.txt && pretokenize -q --holdout 0.05 --holdout-output h2 -o t2 in.txt
    cmp t1 t2 && cmp h1 h2)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
}

}  // namespace
}  // namespace trainwright::test
