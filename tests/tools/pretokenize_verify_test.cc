// pretokenize --verify, as a process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/tool_test.h"

namespace trainwright::test {
namespace {

class PretokenizeVerifyTest : public ToolTest {
 protected:
  // The preloaded library comes before AddressSanitizer's, which a sanitized tool otherwise refuses.
  ProcessResult Shell(const std::string& script) {
    return ToolTest::Shell(
        "export ASAN_OPTIONS=\"${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0\" "
        "MODELS=$FIXTURES/tok/testdata LIE='" TRAINWRIGHT_LYING_SENTENCEPIECE "'\n" +
        script);
  }
};

TEST_F(PretokenizeVerifyTest, ChangesNoByteAndCountsEveryNthDocument) {
  const ProcessResult result = Shell(R"(
    head -n 100 $DATA/gsm8k-train.jsonl > in.jsonl
    for tokenizer in $DATA/mistral-v1.model $MODELS/unigram-1k.model $MODELS/tokenizer_json/llama3.json; do
      pretokenize -q --key answer --tokenizer $tokenizer in.jsonl > plain || exit 9
      pretokenize -q --key answer --tokenizer $tokenizer --verify 3 --threads 3 --summary s.json in.jsonl | cmp - plain || exit 1
      [[ $(grep -o '"documents_verified": *34' s.json) ]] || exit 2
    done)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(Json("s.json")["verified_with"], "the suite's slow byte-level BPE");
}

TEST_F(PretokenizeVerifyTest, ADifferenceEndsTheRunWithExitStatus1AndNoOutput) {
  const ProcessResult result = Shell(R"(
    printf 'the first\nthe SECOND\nthe third\n' > in.txt
    LD_PRELOAD=$LIE pretokenize --tokenizer $DATA/mistral-v1.model --verify 1 -o out.tok in.txt)");
  EXPECT_EQ(result.exit_status, 1) << result.standard_error;
  EXPECT_THAT(result.standard_error, testing::HasSubstr("in.txt"));
  EXPECT_THAT(result.standard_error, testing::HasSubstr("line 2"));
  EXPECT_THAT(result.standard_error, testing::ContainsRegex("token [0-9]+ of a document is id [0-9]+, and "
                                                            "libsentencepiece has id 5"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("out.tok")));
}

TEST_F(PretokenizeVerifyTest, OnErrorSkipSkipsNoDifference) {
  const ProcessResult result = Shell(R"(
    printf 'the first\nthe SECOND\n' |
      LD_PRELOAD=$LIE pretokenize --tokenizer $DATA/mistral-v1.model --verify 1 --on-error skip -o out.tok)");
  EXPECT_EQ(result.exit_status, 1) << result.standard_error;
  EXPECT_THAT(result.standard_error, testing::HasSubstr("libsentencepiece has id 5"));
}

TEST_F(PretokenizeVerifyTest, ComparesOnlyEveryNthDocument) {
  const ProcessResult result = Shell(R"(
    printf 'the first\nthe SECOND\nthe third\n' |
      LD_PRELOAD=$LIE pretokenize --tokenizer $DATA/mistral-v1.model --verify 2 --summary s.json -o out.tok)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(Json("s.json")["documents_verified"], 2);
}

TEST_F(PretokenizeVerifyTest, ConversationsAreComparedToo) {
  const ProcessResult result = Shell(R"(
    printf '{"prompt": "1?", "response": "one"}\n{"prompt": "2?", "response": "the SECOND"}\n' > in.jsonl
    pretokenize -q --records sft --tokenizer $DATA/mistral-v1.model --verify 1 --summary s.json -o out.tok in.jsonl || exit 9
    LD_PRELOAD=$LIE pretokenize --records sft --tokenizer $DATA/mistral-v1.model --verify 1 -o lie.tok in.jsonl)");
  EXPECT_EQ(result.exit_status, 1) << result.standard_error;
  EXPECT_THAT(result.standard_error, testing::HasSubstr("libsentencepiece has id 5"));
  EXPECT_EQ(Json("s.json")["documents_verified"], 2);
}

// "---" is "--" and "-" either way round, with the same score; libraries before 0.2.2 take the other one.
TEST_F(PretokenizeVerifyTest, ATieThatAnOldLibraryCutsOtherwiseIsCountedAndNoDifference) {
  const ProcessResult result = Shell(
      "printf 'a --- b\\na b\\n' | pretokenize --tokenizer $MODELS/unigram-1k.model --verify 1 --summary "
      "s.json "
      "-o out.tok");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  const auto summary = Json("s.json");
  EXPECT_EQ(summary["documents_verified"], 2);
  if (summary["verified_with"] == "libsentencepiece") return;
  EXPECT_EQ(summary["verified_with"], "libsentencepiece (older than 0.2.2)");
  EXPECT_EQ(summary["documents_tied"], 1);
  EXPECT_THAT(result.standard_error, testing::HasSubstr("of which 1 differ"));
}

TEST_F(PretokenizeVerifyTest, NamesTheLibraryItsVersionAndItsFile) {
  const ProcessResult result = Shell(R"(
    printf 'the first\n' > in.txt
    pretokenize --tokenizer $DATA/mistral-v1.model --verify 1 --summary s.json -o out.tok in.txt || exit 9
    pkg-config --modversion sentencepiece)");
  ASSERT_NE(result.exit_status, 9) << result.standard_error;
  const auto library = Json("s.json").at("verified_library");
  EXPECT_EQ(library.at("name"), "libsentencepiece");
  if (!library.at("version").is_null() && result.exit_status == 0) {
    EXPECT_EQ(library.at("version").get<std::string>() + "\n", result.standard_output);
    EXPECT_THAT(result.standard_error,
                testing::HasSubstr(", version " + library.at("version").get<std::string>()));
  }
  if (library.at("path").is_null()) return;  // it is part of the program
  const auto path = library.at("path").get<std::string>();
  EXPECT_THAT(result.standard_error, testing::HasSubstr(path));
  EXPECT_THAT(Shell("sha256sum '" + path + "'").standard_output,
              testing::StartsWith(library.at("sha256").get<std::string>() + " "));
}

TEST_F(PretokenizeVerifyTest, NamesNoLibraryWhereTheSuiteItselfIsAsked) {
  const ProcessResult result = Shell(R"(
    printf 'the first\n' > in.txt
    pretokenize -q --tokenizer $MODELS/tokenizer_json/llama3.json --verify 1 --summary s.json -o out.tok in.txt)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_FALSE(Json("s.json").contains("verified_library"));
}

TEST_F(PretokenizeVerifyTest, RefusesATokenizerThatHasNoReference) {
  const ProcessResult result = Shell("echo a | pretokenize --verify 1 -o out.tok");
  EXPECT_EQ(result.exit_status, 2);
  EXPECT_THAT(result.standard_error, testing::HasSubstr("--verify"));
}

}  // namespace
}  // namespace trainwright::test
