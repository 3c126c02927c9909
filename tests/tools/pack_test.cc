// The tool `pack` as a process: exit statuses, pipes, signals, memory.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/support/tool_test.h"

namespace trainwright::test {
namespace {

/// With the token stream in.tok in the folder.
class PackToolTest : public ToolTest {
 protected:
  void SetUp() override {
    const ProcessResult made = Shell("pretokenize -q $DATA/tinyshakespeare.txt -o in.tok");
    ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  }
};

TEST_F(PackToolTest, PipeFileAndFolderHoldTheSameBytesForAnyThreads) {
  const ProcessResult result = Shell(R"(
    pack --chunk 512 --shard-size 100KB in.tok -o folder/ --threads 1
    cat in.tok | pack --chunk 512 --shard-size 100KB --threads 5 > pipe.tws
    pack --chunk 512 --shard-size 100KB -o file.tws --threads 2 < in.tok
    test $(ls folder/shard-*.tws | wc -l) -ge 3 &&
    cat folder/shard-*.tws | cmp - pipe.tws && cmp file.tws pipe.tws)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
}

TEST_F(PackToolTest, InfoAsJsonIsTheSummaryOfThePacking) {
  const ProcessResult result = Shell(R"(
    pack --chunk 512 in.tok -o folder/ --summary summary.json
    pack --info --json folder > info.json; pack --info --json < folder/shard-*.tws > pipe.json
    cmp info.json pipe.json)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
  const nlohmann::json info = Json("info.json"), summary = Json("summary.json");
  for (const std::string key :
       {"chunk", "chunks", "docs", "tokens", "pad_tokens", "docs_cut", "tokens_dropped", "bits_per_token",
        "vocab_size", "tokenizer_sha256", "mode", "overflow", "shards", "content_sha256", "source_bytes"}) {
    ASSERT_TRUE(info.contains(key)) << key;
    EXPECT_EQ(info[key], summary[key]) << key;
  }
  // tinyshakespeare: 32,777 lines with text, a byte a token, EOS behind each
  EXPECT_EQ(info["docs"], 32777);
  EXPECT_EQ(info["tokens"], 1075394 + 32777);
  EXPECT_EQ(info["source_bytes"], 1075394);
  EXPECT_EQ(info["pad_tokens"].get<uint64_t>() + 1075394 + 32777, 512 * info["chunks"].get<uint64_t>());
  EXPECT_EQ(summary["exit_status"], 0);
  EXPECT_GT(summary["max_memory_bytes"], 0);
}

TEST_F(PackToolTest, TheReportLineIsOnStandardError) {
  const ProcessResult result = Shell("pack --chunk 512 in.tok > out.tws");
  for (const std::string part :
       {"32,777 documents", "% cut", "% padding", "0 tokens dropped", "bits/token", "MB/s"}) {
    EXPECT_NE(result.standard_error.find(part), std::string::npos) << result.standard_error;
  }
}

TEST_F(PackToolTest, MuchPaddingIsWarnedOf) {
  // Documents of 60 tokens: one in a chunk of 100, two in a chunk of 120.
  const std::string documents = "for i in $(seq 100); do printf '%059d\\n' $i; done | pretokenize -q | ";
  EXPECT_NE(Shell(documents + "pack --chunk 100 > out").standard_error.find("--mode concat"),
            std::string::npos);
  EXPECT_EQ(Shell(documents + "pack --chunk 120 > out").standard_error.find("--mode concat"),
            std::string::npos);
}

TEST_F(PackToolTest, UnpackedTextIsTheInput) {
  const ProcessResult result = Shell(R"(
    pack --mode none --chunk 1000 in.tok | pack --cat > text
    grep . $DATA/tinyshakespeare.txt | cmp - text)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
}

TEST_F(PackToolTest, ShardsAreLegalZstdStreams) {
  const ProcessResult result = Shell("pack --shard-size 200KB in.tok > out.tws; zstd -tq out.tws");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
}

TEST_F(PackToolTest, AProducerKilledInTheMiddleSealsNothingAndTheNextRunCleansUp) {
  const ProcessResult result = Shell(R"(
    (head -c 700000 in.tok; kill -9 $BASHPID) 2>&- | pack --chunk 512 --shard-size 100KB -o folder/ ; echo ${PIPESTATUS[1]}
    head -c 700000 in.tok | pack -o file.tws; echo ${PIPESTATUS[1]}
    head -c 700000 in.tok | pack --chunk 512 | pack --verify; echo ${PIPESTATUS[1]} ${PIPESTATUS[2]}
    pack --info folder; echo $?
    pack --chunk 512 --shard-size 100KB in.tok -o folder/ && pack --verify folder > /dev/null; echo $?)");
  EXPECT_EQ(result.standard_output, "3\n3\n3 3\n3\n0\n") << result.standard_error;
  EXPECT_FALSE(Exists("file.tws"));
  EXPECT_NE(result.standard_error.find("ends too early"), std::string::npos) << result.standard_error;
}

TEST_F(PackToolTest, APackerKilledInTheMiddleIsCleanedUpAndSaidSo) {
  const ProcessResult result = Shell(R"(
    mkfifo pipe
    pack --chunk 512 --window 1000 --shard-size 50KB -o folder/ pipe & pid=$!
    (head -c 900000 in.tok; touch fed; while kill -0 $pid; do sleep 0.05; done) > pipe 2>&- &
    for i in $(seq 100); do test -e fed && break; sleep 0.1; done; sleep 0.2
    kill -9 $pid; wait $pid
    ls folder/shard-*.tws > left; pack --info folder; echo $?
    pack --chunk 512 --window 1000 --shard-size 50KB -o folder/ in.tok; echo $?
    pack --chunk 512 --window 1000 --shard-size 50KB -o fresh/ in.tok
    diff <(ls -A folder) <(ls -A fresh) && pack --verify folder > /dev/null; echo $?)");
  EXPECT_EQ(result.standard_output, "3\n0\n0\n") << result.standard_error;
  EXPECT_NE(ReadFile(folder_.path("left")), "") << "nothing was written before the kill";
  EXPECT_NE(result.standard_error.find("that a killed run left"), std::string::npos) << result.standard_error;
}

TEST_F(PackToolTest, ASecondWriterOfTheSameFolderIsStatus2) {
  const ProcessResult result = Shell(R"(
    mkfifo pipe; pack -o folder/ < pipe & exec 3> pipe
    for i in $(seq 100); do test -e folder/.lock && break; sleep 0.1; done; sleep 0.2
    pack -o folder/ in.tok; echo $?
    cat in.tok >&3; exec 3>&-; wait; pack --verify folder > /dev/null; echo $?)");
  EXPECT_EQ(result.standard_output, "2\n0\n") << result.standard_error;
  EXPECT_NE(result.standard_error.find("in use by another process"), std::string::npos)
      << result.standard_error;
}

TEST_F(PackToolTest, SignalsEndItWithTheirStatusAndLeaveNothing) {
  for (const auto& [signal, status] : {std::pair<std::string, int>{"TERM", 143}, {"INT", 130}}) {
    const ProcessResult result =
        Shell("yes 'some text' | pretokenize -q | (pack -q --window 1000 -o folder/ & pid=$!; " +
              std::string("sleep 0.7; kill -") + signal + " $pid; wait $pid)");
    EXPECT_EQ(result.exit_status, status) << result.standard_error;
    EXPECT_EQ(Shell("ls -A folder").standard_output, ".lock\n");
  }
}

TEST_F(PackToolTest, AConsumerThatLeavesEndsItBySigpipe) {
  EXPECT_EQ(Shell("pack --chunk 512 in.tok | head -c 1; echo ${PIPESTATUS[0]}").standard_output.substr(1),
            "141\n");
}

TEST_F(PackToolTest, VerifyNamesTheDamagedShard) {
  const ProcessResult result = Shell(R"(
    pack --chunk 512 --shard-size 100KB in.tok -o folder/ -q
    victim=$(ls folder/shard-00001-*); printf '\377' | dd of=$victim bs=1 seek=5000 conv=notrunc 2>&-
    pack --verify folder; echo $?)");
  EXPECT_EQ(result.standard_output, "3\n");
  EXPECT_NE(result.standard_error.find("folder/shard-00001-"), std::string::npos) << result.standard_error;
  EXPECT_NE(result.standard_error.find("byte "), std::string::npos) << result.standard_error;
}

TEST_F(PackToolTest, UsageErrorsAreStatus2AndNameTheFlag) {
  const std::pair<std::string, std::string> cases[] = {
      {"--mode some", "--mode"},
      {"--overflow cut", "--overflow"},
      {"--chunk 1", "--chunk"},
      {"--chunk 16777217", "--chunk"},
      {"--level 20", "--level"},
      {"--shard-size big", "--shard-size"},
      {"--json", "--json"},
      {"--info --cat", "--info"},
      {"--verify --info", "--verify"},
      {"--info --append", "--append"},
      {"--verify", "-o"},
      {"--export nanogpt --verify", "--export"},
      {"--export nanogpt --repair", "--export"},
      {"--window 0", "--window"},
      {"--threads -1", "--threads"},
  };
  for (const auto& [flags, named] : cases) {
    const ProcessResult result = Shell("pack " + flags + " in.tok -o out.tws");
    EXPECT_EQ(result.exit_status, 2) << flags << ": " << result.standard_error;
    EXPECT_NE(result.standard_error.find(named), std::string::npos) << flags << ": " << result.standard_error;
    EXPECT_FALSE(Exists("out.tws"));
  }
}

TEST_F(PackToolTest, CatAndExportGiveAllInputsOneBehindTheOther) {
  const ProcessResult result = Shell(R"(
    for name in a b; do echo "text $name" | pretokenize -q | pack -q -o $name.tws; done
    pack --cat a.tws b.tws -o both.txt && cat both.txt
    pack --export nanogpt a.tws b.tws -o both.bin
    for name in a b; do pack --export nanogpt $name.tws; done | cmp - both.bin && echo same)");
  EXPECT_EQ(result.standard_output, "text a\ntext b\nsame\n") << result.standard_error;
}

TEST_F(PackToolTest, AnOutputThatIsAnInputIsRefusedAndLeftAsItIs) {
  const ProcessResult result = Shell(R"sh(
    pack -q --chunk 512 in.tok -o a.tws; pack -q --chunk 512 in.tok -o set/; mkdir before; cp -r in.tok a.tws set before
    pack in.tok -o ./in.tok; echo $?
    pack --cat a.tws -o a.tws; echo $?
    pack --export nanogpt set -o set/MANIFEST.json; echo $?
    pack --repair set -o "$(ls set/*.tws)"; echo $?
    pack --repair set -o set/new.tws; echo $?
    for kept in in.tok a.tws set; do diff -r $kept before/$kept; done)sh");
  EXPECT_EQ(result.standard_output, "2\n2\n2\n2\n2\n") << result.standard_error;
}

TEST_F(PackToolTest, NeitherFileOfAMegatronPairIsReplacedWhicheverIsNamed) {
  const ProcessResult result = Shell(R"sh(
    cp "$FIXTURES"/packing/fixtures/foreign/short.* .; mkdir before; cp short.* before
    pack --vocab 50257 short.idx -o short.bin; echo $?
    pack --vocab 50257 --from megatron short.bin -o ./short.idx; echo $?
    pack --vocab 50257 short.idx -o out.tws --summary short.bin; echo $?
    for kept in short.idx short.bin; do cmp $kept before/$kept; done
    pack -q --vocab 50257 short.idx -o out.tws; echo $?)sh");
  EXPECT_EQ(result.standard_output, "2\n2\n2\n0\n") << result.standard_error;
}

TEST_F(PackToolTest, ARunWithoutInputMakesNoFolder) {
  const ProcessResult result = Shell(R"(
    pack nothing.tok -o new/; echo $?; echo junk > junk; pack --repair junk -o new/; echo $?
    pack --repair /dev/null -o new/; echo $?; ls)");
  EXPECT_EQ(result.standard_output, "4\n3\n2\nin.tok\njunk\n") << result.standard_error;
}

// It once put the saved set in the place of the one that was to grow.
TEST_F(PackToolTest, WhatIsSavedIsNeverAppendedToASetNorPutInItsPlace) {
  const ProcessResult result = Shell(R"(
    pack -q --chunk 64 in.tok -o set/ && pack -q --chunk 64 in.tok -o file.tws && cp set/MANIFEST.json before
    pack --repair --append file.tws -o set/; echo $?; cmp before set/MANIFEST.json)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "2\n");
  EXPECT_NE(result.standard_error.find("hint: save to a new -o"), std::string::npos) << result.standard_error;
}

TEST_F(PackToolTest, QuietLeavesOutTheHintsOfWarningsToo) {
  const ProcessResult result =
      Shell("yes 0123456789 | head -n 9 | pretokenize -q | pack -q --chunk 16 -o out.tws");
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.standard_error, "");
}

TEST_F(PackToolTest, ATerminalIsNoPlaceForShards) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_TRUE(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
  const std::string path = ptsname(terminal);
  Shell("echo a | pretokenize -q -o small.tok");
  EXPECT_EQ(Shell("pack small.tok > " + path).exit_status, 2);
  EXPECT_EQ(Shell("pack small.tok -o " + path).exit_status, 2);
  EXPECT_EQ(Shell("pack -f small.tok > " + path).exit_status, 0);
  EXPECT_EQ(Shell("pack < " + path + " > out.tws").exit_status, 2);
  close(terminal);
}

TEST_F(PackToolTest, IoFailuresAreStatus4) {
  EXPECT_EQ(Shell("pack missing.tok > out").exit_status, 4);
  EXPECT_EQ(Shell("pack in.tok -o missing/out.tws").exit_status, 4);
  EXPECT_EQ(Shell("pack in.tok > /dev/full").exit_status, 4);
  EXPECT_EQ(Shell("pack in.tok -o /dev/full").exit_status, 4);
  EXPECT_EQ(Shell("pack -q in.tok | pack --cat --json > /dev/full").exit_status, 4);
}

TEST_F(PackToolTest, WrongInputIsStatus3) {
  EXPECT_EQ(Shell("pack < /dev/null > out").exit_status, 3);
  EXPECT_EQ(Shell("pack $DATA/tinyshakespeare.txt > out").exit_status, 3);
  EXPECT_EQ(Shell("pretokenize -q < /dev/null | pack -o out.tws").exit_status, 3);
  EXPECT_EQ(Shell("pack --info in.tok").exit_status, 3);
  EXPECT_EQ(Shell("pack --overflow error --chunk 10 in.tok -o out.tws").exit_status, 3);
  EXPECT_FALSE(Exists("out.tws"));
}

TEST_F(PackToolTest, MemoryDoesNotGrowWithTheInput) {
  const ProcessResult result = Shell(R"(
    export ASAN_OPTIONS=quarantine_size_mb=1  # a sanitizer keeps freed memory for a while
    head -n 200 $DATA/tinyshakespeare.txt > lines
    for mb in 10 100; do
      yes "$(cat lines) " | head -c ${mb}000000 | pretokenize -q |
        pack -q --window 1000000 --threads 3 --summary $mb.json -o /dev/null
    done
  )");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  const double small = Json("10.json")["max_memory_bytes"], large = Json("100.json")["max_memory_bytes"];
  EXPECT_GT(Json("100.json")["tokens"], 90000000);
  EXPECT_LT(large, 1.1 * small);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(PackToolTest, MemoryThatEndsInsideLibzstdIsStatus4AndNoDamage) {
  const ProcessResult result = Shell(R"sh(
    pack -q --chunk 4096 in.tok -o whole/
    for kib in $(seq 12000 750 40000); do
      for command in "pack -q --threads 2 --chunk 4096 in.tok -o out" "pack -q --repair whole -o out"; do
        ( ulimit -d $kib; exec $command ) 2> log; status=$?
        case "$status $([ -e out ] && echo made)" in '0 made' | '4 ') ;; *) echo "$kib: $command: $status"; cat log ;; esac
        rm -rf out
      done
    done
    # A frame that asks for a window of 128 MiB.
    yes 'a line' | head -n 100000 | zstd -q --long=27 > long.zst
    ( ulimit -v 100000; exec pretokenize -q --threads 1 long.zst -o out ) 2> log; echo $?; grep -c ': memory: ' log)sh");
  EXPECT_EQ(result.standard_output, "4\n1\n") << result.standard_error;
}
#endif

}  // namespace
}  // namespace trainwright::test
