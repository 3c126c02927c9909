// pretokenize -o DIR/ as processes that are ended and run again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/tool_test.h"

namespace trainwright::test {
namespace {

class PretokenizeFolderTest : public ToolTest {
 protected:
  uint64_t Summary(const std::string& name) { return Json("summary.json").at(name).get<uint64_t>(); }
};

constexpr char kInputs[] = R"sh(
  mkdir -p in/sub
  seq 1 4000 > in/a.txt; seq 9000 9700 | zstd -q > in/b.txt.zst; : > in/c.txt
  for i in $(seq 90); do printf '{"text": "%0*d"}\n' $((i * i % 397 + 1)) $i; done > in/d.jsonl
  seq 5000 5900 | gzip -n > in/sub/e.txt.gz; printf 'one\n\n\nlast without a newline' > in/sub/f.txt
)sh";

TEST_F(PretokenizeFolderTest, TheShardsAreThoseOfOneStreamOfAllInputs) {
  const ProcessResult result = Shell(std::string(kInputs) + R"sh(
    pretokenize -q in -o one.tok || exit 1
    pretokenize -q --summary summary.json in -o dir/ || exit 2
    pack -q --chunk 512 one.tok -o one.tws && pack -q --chunk 512 dir/ -o dir.tws && cmp one.tws dir.tws || exit 3
    pretokenize -q --decode one.tok > one.txt && pretokenize -q --decode dir | cmp - one.txt || exit 4
    for stream in dir/stream-*.twt; do pretokenize -q --decode $stream; done | cmp - one.txt || exit 5
    test "$(ls dir | wc -l)" = 7)sh");
  EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
  EXPECT_EQ(Summary("streams"), 6u);
  EXPECT_EQ(Summary("streams_taken_over"), 0u);
}

TEST_F(PretokenizeFolderTest, ASecondRunMakesNothingAgainAndCountsTheSame) {
  const ProcessResult result = Shell(std::string(kInputs) + R"sh(
    pretokenize -q --summary first.json in -o dir/ && ls -i --time-style=full-iso -l dir > before || exit 1
    pretokenize --summary summary.json in -o dir/ || exit 2
    ls -i --time-style=full-iso -l dir | cmp - before)sh");
  EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
  EXPECT_THAT(result.standard_error, testing::HasSubstr("6 streams, 6 of them from a former run"));
  EXPECT_EQ(Summary("streams_taken_over"), 6u);
  const auto first = nlohmann::json::parse(ReadFile(folder_.path("first.json")));
  for (const char* count : {"documents", "tokens", "source_bytes", "empty_documents", "input_bytes"}) {
    EXPECT_EQ(Summary(count), first.at(count).get<uint64_t>()) << count;
  }
  EXPECT_EQ(first.at("documents"), 4000 + 701 + 90 + 901 + 2);
  EXPECT_EQ(first.at("empty_documents"), 2);
}

TEST_F(PretokenizeFolderTest, WhateverChangedIsMadeAgainAndNothingElse) {
  const auto taken_over = [&](const std::string& change, const std::string& options = "") {
    const ProcessResult result = Shell(
        change + "\npretokenize -q --summary summary.json " + options + " in -o dir/ && pretokenize -q " +
        options + " in | pack -q --chunk 512 -o one.tws && pack -q --chunk 512 dir/ | cmp - one.tws");
    EXPECT_EQ(result.exit_status, 0) << change << options << result.standard_output << result.standard_error;
    return Summary("streams_taken_over");
  };
  EXPECT_EQ(taken_over(kInputs), 0u);
  EXPECT_EQ(taken_over(""), 6u);
  EXPECT_EQ(taken_over("echo more >> in/a.txt"), 5u);
  EXPECT_EQ(taken_over("sed -i s/1/2/ in/a.txt"), 5u) << "of the same size";
  EXPECT_EQ(taken_over("touch -d 2001-01-01 in/c.txt"), 5u);
  EXPECT_EQ(taken_over("", "--no-eos"), 0u);
  EXPECT_EQ(taken_over("", "--max-chars 4"), 0u);
  EXPECT_EQ(taken_over(""), 0u) << "a former set's streams are gone";
  EXPECT_EQ(taken_over("echo first > in/0.txt"), 6u) << "all others move by one";
  EXPECT_EQ(taken_over("rm in/0.txt in/c.txt"), 5u);
  EXPECT_EQ(taken_over("s=$(ls dir/*.twt | head -n 1); head -c 300 $s > x; cat x > $s"), 4u);
  EXPECT_EQ(
      taken_over("printf x | dd of=$(ls dir/*.twt | head -n 1) bs=1 seek=1000 conv=notrunc status=none"), 4u);
  EXPECT_EQ(taken_over("rm dir/MANIFEST.json"), 0u);
  const ProcessResult files = Shell("ls dir/*.twt | wc -l");
  EXPECT_EQ(files.standard_output, "5\n") << "no stream of a former set stays";
}

TEST_F(PretokenizeFolderTest, ARunThatIsKilledAtAnyMomentGoesOnToTheSameBytes) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  ASSERT_EQ(
      Shell(R"sh(mkdir in; for i in $(seq 10 39); do seq ${i}000 $((i * 1000 + i * 37)) > in/$i.txt; done
                     pretokenize -q in | pack -q --chunk 512 -o one.tws)sh")
          .exit_status,
      0);
  uint64_t taken_over = 0;
  for (int round = 0; round < 6; ++round) {
    // Some are killed once so many streams are there, some at any moment.
    const std::string when = std::to_string(random() % 29);
    const std::string pause = "0.0" + std::to_string(random() % 10);
    const ProcessResult result = Shell(R"sh(
      rm -rf dir; setsid pretokenize -q in -o dir/ & pid=$!
      until test "$(ls dir 2> /dev/null | wc -l)" -gt )sh" +
                                       when + R"sh( || ! kill -0 $pid 2> /dev/null; do :; done
      test )sh" + std::to_string(round % 2) +
                                       " = 0 || sleep " + pause + R"sh(
      kill -9 $pid 2> /dev/null; wait $pid 2> /dev/null
      if test ! -e dir/MANIFEST.json; then pack -q dir/ -o never.tws 2> /dev/null; test $? = 3 || exit 1; fi
      ls dir/*.twt 2> /dev/null | wc -l > finished
      pretokenize -q --summary summary.json in -o dir/ 2> messages || exit 2
      pack -q --chunk 512 dir/ | cmp - one.tws || exit 3
      test "$(ls -A dir | wc -l)" = 32)sh");  // the streams, the manifest and the lock
    EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
    const uint64_t finished = std::stoull(ReadFile(folder_.path("finished")));
    // One stream may be in place that the journal did not name yet.
    EXPECT_GE(Summary("streams_taken_over") + 1, finished);
    taken_over += Summary("streams_taken_over");
  }
  EXPECT_GT(taken_over, 0u) << "no run was killed between two streams";
}

TEST_F(PretokenizeFolderTest, WithoutSpaceTheStreamsBeforeStayAndTheNextRunTakesThemOver) {
  const ProcessResult result = Shell(R"sh(
    mkdir in; seq 100 > in/a.txt; seq 200 > in/b.txt; seq 90000 > in/c.txt; seq 50 > in/d.txt
    (trap '' XFSZ; ulimit -f 64; pretokenize -q in -o dir/); test $? = 4 || exit 1
    test "$(ls dir | wc -l)" = 2 && ls -A dir | grep -q tmp- && exit 2
    pack -q dir/ -o never.tws; test $? = 3 || exit 3
    pretokenize -q --summary summary.json in -o dir/ || exit 4
    pretokenize -q in | pack -q -o one.tws && pack -q dir | cmp - one.tws)sh");
  EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
  EXPECT_THAT(result.standard_error, testing::HasSubstr("run its pretokenize command again"));
  EXPECT_EQ(Summary("streams_taken_over"), 2u);
}

TEST_F(PretokenizeFolderTest, ABadDocumentCostsItsOwnStreamAlone) {
  const ProcessResult result = Shell(R"sh(
    mkdir in; seq 100 > in/a.txt; printf 'no json\n' > in/b.jsonl; seq 50 > in/c.txt
    pretokenize -q in -o dir/; test $? = 3 || exit 1
    pack -q dir/ -o never.tws 2> /dev/null; test $? = 3 || exit 2
    echo '{"text": "x"}' > in/b.jsonl; pretokenize -q --summary summary.json in -o dir/ && pack -q dir/ -o shards/)sh");
  EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
  EXPECT_THAT(result.standard_error, testing::HasSubstr("in/b.jsonl"));
  EXPECT_EQ(Summary("streams_taken_over"), 1u);
}

constexpr char kDatedTalks[] = R"sh(
unset SOURCE_DATE_EPOCH
mkdir in
cat > dated.jinja << 'JINJA'
{{ strftime_now('%H:%M:%S') }}{% for m in messages %}{{ m.role + ': ' }}{% if m.role == 'assistant' %}
{% generation %}{{ m.content + '!' }}{% endgeneration %}
{% else %}{{ m.content }}{% endif %}{% endfor %}
JINJA
talk() {
  printf '{"messages": [{"role": "user", "content": "%s?"}, {"role": "assistant", "content": "%s"}]}\n' $1 $1
}
at() {
  (test $1 = now || export SOURCE_DATE_EPOCH=$1; pretokenize --records sft --template dated.jinja "${@:2}")
}
)sh";

TEST_F(PretokenizeFolderTest, ADatedTemplateGoesOnAtTheTimeOfTheStreamsThatAreThere) {
  const ProcessResult result = Shell(std::string(kDatedTalks) + R"sh(
    talk one > in/a.jsonl; printf 'no json\n' > in/b.jsonl
    at 86400 -q in -o dir/; test $? = 3 || exit 1
    talk two > in/b.jsonl; at now --summary summary.json in -o dir/ || exit 2
    at 86400 -q in -o one.tok && pack -q --chunk 512 one.tok -o one.tws || exit 3
    pack -q --chunk 512 dir/ | cmp - one.tws)sh");
  EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
  EXPECT_THAT(result.standard_error,
              testing::HasSubstr("that a former run left there, SOURCE_DATE_EPOCH=86400, not of this run"));
  EXPECT_EQ(Summary("streams_taken_over"), 1u);
}

TEST_F(PretokenizeFolderTest, ATimeThatIsChosenMakesTheStreamsOfADatedTemplateAgain) {
  const ProcessResult result = Shell(std::string(kDatedTalks) + R"sh(
    talk one > in/a.jsonl; at 86400 -q in -o dir/ || exit 1
    at 90000 -q --summary summary.json in -o dir/ || exit 2
    at 90000 -q in -o one.tok && pack -q --chunk 512 one.tok -o one.tws || exit 3
    pack -q --chunk 512 dir/ | cmp - one.tws)sh");
  EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
  EXPECT_EQ(Summary("streams_taken_over"), 0u);
}

TEST_F(PretokenizeFolderTest, StreamsOfOtherKeysAreNotTakenOver) {
  const ProcessResult result = Shell(R"sh(
    mkdir in; printf '{"text": "one"}\n{"content": "two"}\n' > in/a.jsonl
    pretokenize -q --key text --on-error skip in -o dir/ || exit 1
    pretokenize -q --decode dir | cmp - <(echo one) || exit 2
    pretokenize -q --on-error skip in -o dir/ || exit 3
    pretokenize -q --decode dir | cmp - <(echo one; echo two) || exit 4
    pretokenize -q --on-error skip --summary summary.json in -o dir/ || exit 5
    pretokenize -q in -o other/ || exit 6
    pretokenize -q --key text in -o other/; test $? = 3)sh");
  EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
  EXPECT_EQ(Summary("streams_taken_over"), 1u) << "of the same keys";
}

TEST_F(PretokenizeFolderTest, OneRunAtATimeAndNoFolderOfSomethingElse) {
  const ProcessResult result = Shell(R"sh(
    seq 100 > a.txt; mkdir dir shards
    (flock 9; pretokenize -q a.txt -o dir/; test $? = 2) 9> dir/.lock || exit 1
    pretokenize -q a.txt | pack -q -o shards/ || exit 2
    pretokenize -q a.txt -o shards/; test $? = 3 || exit 3
    pack -q --verify shards > /dev/null || exit 4
    pack -q shards/ -o never.tws; test $? = 3 || exit 5
    pretokenize -q a.txt -o dir/ || exit 6
    pack -q a.txt -o dir/; test $? = 3 || exit 7
    rm dir/stream-*; pack -q dir/ -o never.tws; test $? = 3 || exit 8
    test ! -e never.tws)sh");
  EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
  EXPECT_THAT(result.standard_error, testing::HasSubstr("in use"));
}

TEST_F(PretokenizeFolderTest, AFolderThatIsReadAndWrittenDoesNotReadItsOwnFiles) {
  const ProcessResult result = Shell(R"sh(
    mkdir dir; seq 100 > dir/a.txt; seq 9 > dir/b.txt
    for format in auto lines; do
      pretokenize -q --format $format dir -o dir/ && pretokenize -q --summary summary.json --format $format dir -o dir/ || exit 1
      (seq 100; seq 9) | cmp - <(pretokenize -q --decode dir) || exit 2
    done)sh");
  EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
  EXPECT_EQ(Summary("streams_taken_over"), 2u);
}

TEST_F(PretokenizeFolderTest, WhatAFolderCannotHoldIsRefusedByNameAndMakesNoFolder) {
  Shell("seq 100 > a.txt");
  const auto expect = [&](const std::string& arguments, const std::string& words) {
    const ProcessResult result = Shell("seq 3 | pretokenize -q " + arguments + " -o dir/");
    EXPECT_EQ(result.exit_status, 2) << arguments;
    EXPECT_THAT(result.standard_error, testing::HasSubstr(words)) << arguments;
    EXPECT_FALSE(std::filesystem::exists(folder_.path("dir"))) << arguments;
  };
  expect("", "standard input");
  expect("a.txt -", "standard input");
  expect("--slice 1/1 a.txt", "--slice");
  expect("--limit 3 a.txt", "--limit");
  expect("--to jsonl a.txt", "--to jsonl");
  expect("--holdout 0.5 --holdout-output h.tok a.txt", "--holdout");
}

}  // namespace
}  // namespace trainwright::test
