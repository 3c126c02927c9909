// Two writers of one place that cannot see each other's processes: containers, and hosts on one file system.
#include <gtest/gtest.h>

#include "tests/support/tool_test.h"

namespace trainwright::test {
namespace {

/// Runs scripts in which `$apart COMMAND` runs a command as process 1 of a PID namespace of its own.
class NamespacesTest : public ToolTest {
 protected:
  void SetUp() override {
    const ProcessResult result = Shell(R"sh(
      for apart in 'unshare --pid --fork --mount-proc' \
                   'unshare --user --map-root-user --pid --fork --mount-proc'; do
        [ "$($apart sh -c 'echo $$')" = 1 ] && echo "$apart" && exit
      done)sh");
    if (result.standard_output.empty()) {
      GTEST_SKIP() << "this machine gives a process no PID namespace: " << result.standard_error;
    }
    apart_ = result.standard_output.substr(0, result.standard_output.find('\n'));
  }
  ProcessResult ShellApart(const std::string& script) {
    return Shell("apart='" + apart_ + "' rounds=5\n" + script);
  }

 private:
  std::string apart_;
};

TEST_F(NamespacesTest, OfTwoWritersOfOneFileOneIsThereWholeAndNeitherFails) {
  const ProcessResult result = ShellApart(R"sh(
    seq 3000 > a; seq 5000 9000 > b
    for input in a b; do pretokenize -q --format lines $input -o $input.tok; done
    for round in $(seq $rounds); do
      rm -f out from.a from.b; mkfifo from.a from.b
      $apart pretokenize -q --format lines from.a -o out & first=$!
      $apart pretokenize -q --format lines from.b -o out & second=$!
      exec 8> from.a 9> from.b  # both have opened their outputs
      cat b >&9; cat a >&8
      exec 8>&- 9>&-
      wait $first || echo "round $round: the first one failed"
      wait $second || echo "round $round: the second one failed"
      cmp -s out a.tok || cmp -s out b.tok || echo "round $round: neither's file is there"
      ls -A | grep tmp-
    done 2>&1
    echo "rounds: $round")sh");
  EXPECT_EQ(result.standard_output, "rounds: 5\n") << result.standard_error;
}

TEST_F(NamespacesTest, AWriterOfCkpt1LeavesAloneWhatAnotherWritesForCkpt10) {
  constexpr size_t kElements = 1'000'000;
  std::string file(8, '\0');
  const std::string header = R"({"t":{"dtype":"F32","shape":[1000000],"data_offsets":[0,4000000]}})";
  file[0] = static_cast<char>(header.size());
  file += header;
  uint32_t bits = 1;
  for (size_t i = 0; i < kElements * sizeof(float); ++i) {
    file += static_cast<char>(bits >> 16);
    bits = bits * 1664525 + 1013904223;
  }
  WriteFile(folder_.path("t.safetensors"), file);
  const ProcessResult result = ShellApart(R"sh(
    # A writer may be stopped at its very end, where LeakSanitizer's own tracer would wait for it for ever.
    export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
    mkdir in in/small; mv t.safetensors in; small='{"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    mkdir one; printf "\\$(printf %o ${#small})\\0\\0\\0\\0\\0\\0\\0${small}abcd" > one/t.safetensors
    ckpt-compress -q --fast in -o want10 && ckpt-compress -q --fast one -o want1 || exit 1
    met=0
    for round in $(seq $((40 * rounds))); do
      [ $met -lt $rounds ] || break
      rm -rf ckpt-1 ckpt-10
      $apart ckpt-compress -q --fast in -o ckpt-10 & writer=$!
      until compgen -G '.ckpt-10.tmp-*/*' > /dev/null || ! kill -0 $writer 2> /dev/null; do :; done
      inner=''
      { read -r inner < /proc/$writer/task/$writer/children && kill -STOP $inner; } 2> /dev/null
      compgen -G '.ckpt-10.tmp-*' > /dev/null && met=$((met + 1))
      $apart ckpt-compress -q --fast one -o ckpt-1 || echo "round $round: ckpt-1 failed"
      kill -CONT $inner 2> /dev/null
      wait $writer || echo "round $round: ckpt-10 failed"
      diff -r want10 ckpt-10 && diff -r want1 ckpt-1
      ls -A | grep tmp-
    done 2>&1
    echo "met: $met")sh");
  EXPECT_EQ(result.standard_output, "met: 5\n") << result.standard_error;
}

TEST_F(NamespacesTest, WhatAKilledWriterLeftIsRemovedThoughItsNumberLivesHereAndAFolderTakesOneWriter) {
  const ProcessResult result = ShellApart(R"sh(
    seq 9 > a; mkfifo text
    $apart pretokenize -q --format lines text -o out & exec 8> text  # process 1 lives everywhere
    read -r inner < /proc/$!/task/$!/children; kill -9 $inner; wait; exec 8>&-
    ls -A | grep -c tmp-
    pretokenize -q --format lines a -o out; ls -A | grep tmp-
    mkdir dir
    $apart flock dir/.lock -c 'touch locked; read -r _ < text' & until [ -e locked ]; do sleep 0.01; done
    $apart pretokenize -q --format lines a -o dir/; echo $?
    echo > text; wait; $apart pretokenize -q --format lines a -o dir/; echo $?)sh");
  EXPECT_EQ(result.standard_output, "1\n2\n0\n") << result.standard_error;
}

using TemporaryNamesTest = ToolTest;

/// Names that a process can foretell, since exec keeps its number.
constexpr char kPlanted[] = R"sh(
  echo precious > victim
  planted() { local file=$1; shift; sh -c "ln -s victim .$file.tmp-\$\$ && exec \"\$@\"" sh "$@"; }
)sh";

TEST_F(TemporaryNamesTest, TemporariesOfSummaryAndSaveFollowNoPlantedLink) {
  const ProcessResult result = Shell(std::string(kPlanted) + R"sh(
    echo text > in
    planted s.json pretokenize -q --format lines in --summary s.json -o out && grep -q documents s.json || echo summary
    planted out.tok pretokenize -q --format lines in -o out.tok && pretokenize --decode out.tok
    planted b.json bench -q --before true --after true --min-rounds 2 --max-rounds 2 --warmup 0 --save b.json > /dev/null 2>&1; grep -q results b.json || echo save
    cat victim)sh");
  EXPECT_EQ(result.standard_output, "text\nprecious\n") << result.standard_error;
}

#ifdef TRAINWRIGHT_SYSCALL_FAULTS  // of builds with the engines
TEST_F(TemporaryNamesTest, TheTemporaryOfLogitsFollowsNoPlantedLink) {
  const ProcessResult result = Shell(std::string(kPlanted) + R"sh(
    seq 300 > in; pretokenize -q in | pack -q --chunk 512 -o shards/
    train -q --steps 1 --batch 1 --seq 64 --out run 2> /dev/null || exit 1
    planted l.safetensors evaluate -q --checkpoint run --data in --logits l.safetensors > /dev/null || echo failed
    head -c 100 l.safetensors | grep -c logits
    cat victim)sh");
  EXPECT_EQ(result.standard_output, "1\nprecious\n") << result.standard_error;
}
#endif

}  // namespace
}  // namespace trainwright::test
