// Inputs that others write to while a tool reads them: no output is sealed, and the exit status is 3.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tool_test.h"

namespace trainwright::test {
namespace {

/// Where tools can be stopped at a chosen call.
class ChangingInputTest : public ToolTest {
 protected:
  void SetUp() override {
#ifndef TRAINWRIGHT_SYSCALL_FAULTS
    GTEST_SKIP() << "no library of failing calls in this build";
#endif
  }
  /// \param script calls `across FAULT CHANGE COMMAND...`, which runs the command, changes the input where
  ///     the fault stops it, goes on, and prints the exit status
  ProcessResult ShellAcross(const std::string& script) {
#ifdef TRAINWRIGHT_SYSCALL_FAULTS
    const std::string preload = TRAINWRIGHT_SYSCALL_FAULTS;
#else
    const std::string preload;
#endif
    return Shell("export PRELOAD='" + preload + "'\n" + R"sh(
      awk 'BEGIN { srand(7); for (i = 0; i < 300000; ++i) printf "%.15f %.15f\n", rand(), rand() }' > original
      tr 0-9 a-j < original > other
      stop_at() {
        local fault=$1 change=$2; shift 2
        LD_PRELOAD=$PRELOAD SYSCALL_FAULT="$fault STOP" "$@" > stdout 2> log & local pid=$!
        for _ in $(seq 3000); do
          grep -q '^State:.T' /proc/$pid/status && break
          kill -0 $pid 2> /dev/null || break
          sleep 0.01
        done
        grep -q '^State:.T' /proc/$pid/status 2> /dev/null || echo "$*: did not stop"
        eval "$change"; kill -CONT $pid; wait $pid; status=$?
      }
      across() {
        local fault=$1 change=$2; shift 2
        cp original input
        stop_at "$fault" "$change" "$@"; echo $status
        [ $status = 0 ] || grep -q 'input: changed while' log || { echo "$change: $*"; cat log; }
      }
      changes=('truncate -s 6000000 input' 'truncate -s 0 input' 'cat original >> input' 'cat other > input'
               'touch -r input time; cat other > input; touch -r time input')
    )sh" + script);
  }
  /// Each change in each kind of output: a file, standard output, a folder.
  /// \param definitions of $tool, of $part, what the names of the folder's files begin with, and of
  ///     read_stdout, which reads the file "stdout"
  void ExpectNothingSealed(const std::string& definitions) {
    const ProcessResult result = ShellAcross(definitions + R"sh(
      for change in "${changes[@]}"; do
        across 'write /.out 2' "$change" $tool input -o out
        [ ! -e out ] || echo "$change: there is an output"
        across 'write /stdout 2' "$change" $tool input
        read_stdout > /dev/null 2>&1; [ $? = 3 ] || echo "$change: standard output is sealed"
        across "write /.$part 2" "$change" $tool input -o dir/
        [ ! -e dir/MANIFEST.json ] || echo "$change: the folder is sealed"
        rm -rf dir
      done | tr '\n' ' ')sh");
    EXPECT_EQ(result.standard_output, "3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 ") << result.standard_error;
  }
};

TEST_F(ChangingInputTest, PretokenizeSealsNeitherFileNorStandardOutputNorFolder) {
  ExpectNothingSealed(R"sh(
    tool='pretokenize -q --threads 1 --format lines' part=stream
    read_stdout() { pack -q stdout -o never.tws; })sh");
}

TEST_F(ChangingInputTest, PretokenizeRefusesSlicesLimitsAndCompressedFiles) {
  const ProcessResult result = ShellAcross(R"sh(
    across 'write /.out 2' 'cat original >> input' pretokenize -q --threads 1 --format lines --slice 1/2 input -o out
    across 'write /.out 2' 'cat other > input' pretokenize -q --threads 1 --limit 250000 --format lines input -o out
    gzip -n original; for _ in 1 2 3 4; do cat original.gz; done > original
    across 'write /.out 2' "truncate -s $(($(stat -c %s original) / 4 * 3)) input" \
      pretokenize -q --threads 1 --format lines input -o out
    [ ! -e out ] || echo "there is an output")sh");
  EXPECT_EQ(result.standard_output, "3\n3\n3\n") << result.standard_error;
}

TEST_F(ChangingInputTest, PackSealsNeitherFileNorStandardOutputNorFolder) {
  ExpectNothingSealed(R"sh(
    for text in original other; do pretokenize -q --format lines $text > tokens && mv tokens $text; done
    tool='pack -q --threads 1 --mode concat --chunk 1024 --level 1' part=shard
    read_stdout() { pack -q --verify stdout; })sh");
}

TEST_F(ChangingInputTest, EvaluatePrintsNoFigureForText) {
  WriteFile(folder_.path("tiny.json"),
            R"({"model_type": "gpt2", "vocab_size": 258, "n_embd": 32, "n_layer": 2,
    "n_head": 2, "n_positions": 64, "activation_function": "gelu_new"})");
  const ProcessResult result = ShellAcross(R"sh(
    head -c 1200000 original > short; mv short original
    head -n 200 original | pretokenize -q | pack -q --chunk 512 -o shards/
    train -q --model tiny.json --steps 1 --batch 1 --seq 64 --out run 2> /dev/null || exit 1
    for change in 'truncate -s 600000 input' 'cat original >> input'; do
      cp original input
      evaluate -q --checkpoint run --data input --format lines > figures 2> log & pid=$!
      until readlink /proc/$pid/fd/* 2> /dev/null | grep -q '/input$'; do
        kill -0 $pid 2> /dev/null || { cat log; break; }
      done
      kill -STOP $pid; eval "$change"; kill -CONT $pid; wait $pid; echo $?
      grep -q 'input: changed while' log || cat log
      cat figures
    done)sh");
  EXPECT_EQ(result.standard_output, "3\n3\n") << result.standard_error;
}

/// Files that are mapped, and models, which are read twice: for their hashes, and for what they hold.
class ChangingModelTest : public ChangingInputTest {
 protected:
  void SetUp() override {
    ChangingInputTest::SetUp();
    if (IsSkipped()) return;
    WriteFile(folder_.path("tiny.json"),
              R"({"model_type": "gpt2", "vocab_size": 258, "n_embd": 32, "n_layer": 2,
      "n_head": 2, "n_positions": 64, "activation_function": "gelu_new"})");
  }
  /// \param script calls `expect_3 FILE NUMBER CHANGE COMMAND...`, which makes the change before the
  ///     NUMBERth time that the command maps the file; then prints "FILE: COMMAND" unless it ends with 3,
  ///     names the file, and leaves neither a sealed output nor figures
  ProcessResult ShellWithModels(const std::string& script) {
    return ShellAcross(R"sh(
      export TRAINWRIGHT_THREADS=1
      head -n 2000 original | pretokenize -q | pack -q --chunk 512 -o shards/
      tiny="-q --steps 2 --batch 1 --seq 64 --data shards"
      for seed in 1 2; do
        train $tiny --model tiny.json --seed $seed --out run$seed
        train $tiny --lora 2 --init run$seed --seed $seed --out lora$seed
      done 2> /dev/null
      weights=checkpoints/step-00000002/model.safetensors adapter=checkpoints/step-00000002/adapter_model.safetensors
      expect_3() {
        local file=$1 number=$2 change=$3; shift 3
        rm -rf model low out; cp -r run1 model; cp -r lora1 low
        stop_at "mmap /$file $number" "$change" "$@"
        [ $status = 3 ] && grep -q "${file##*/}: \(changed while\|was cut while\|was cut from\|ends too\)" log &&
          [ ! -s stdout ] && ! ls -d out/latest out/MANIFEST.json out/*.safetensors > /dev/null 2>&1 && return
        echo "$change: $*: $status"; cat log stdout; ls out
      }
    )sh" + script + "\nls -d run1 lora2 | tr '\\n' ' '");
  }
};

TEST_F(ChangingModelTest, WeightsThatAreWrittenToBetweenTheirHashAndTheirUseAreRefused) {
  const ProcessResult result = ShellWithModels(R"sh(
    evaluate="evaluate -q --allow-other-base --data shards --checkpoint model"
    merge="train -q --allow-other-base --merge low --init model --out out"
    over="cat run2/$weights > model/$weights" instead="cp run2/$weights new; mv new model/$weights"
    for command in "$evaluate" "$evaluate --adapter low" "generate -q --checkpoint model --prompt a" "$merge" \
        "train $tiny --init model --out out"; do
      expect_3 model/$weights 2 "$over" $command
      expect_3 model/$weights 1 "$instead" $command
    done
    over="cat lora2/$adapter > low/$adapter" instead="cp lora2/$adapter new; mv new low/$adapter"
    for command in "$evaluate --adapter low" "$merge"; do
      expect_3 low/$adapter 3 "$over" $command
      expect_3 low/$adapter 1 "$instead" $command
    done)sh");
  EXPECT_EQ(result.standard_output, "lora2 run1 ") << result.standard_error;
}

TEST_F(ChangingModelTest, AMappedFileThatIsCutIsBadInputAndNoSignal) {
  const ProcessResult result = ShellWithModels(R"sh(
    cut_weights="truncate -s 5000 model/$weights"
    expect_3 model/$weights 1 "$cut_weights" evaluate -q --checkpoint model --data shards
    expect_3 model/$weights 2 "$cut_weights" evaluate -q --checkpoint model --data shards
    expect_3 model/$weights 2 "$cut_weights" generate -q --checkpoint model --prompt a
    cp -r shards kept; shard=$(basename shards/shard-*)
    cut_shard="truncate -s 4096 shards/$shard"
    for command in "evaluate -q --checkpoint model --data shards" "pack -q --info shards" \
        "pack -q --verify shards" "pack -q --repair shards -o out"; do
      expect_3 shards/$shard 1 "$cut_shard" $command
      cp kept/$shard shards/$shard
    done)sh");
  EXPECT_EQ(result.standard_output, "lora2 run1 ") << result.standard_error;
}

TEST_F(ChangingInputTest, WhatIsWrittenOnceAllIsReadIsRefusedToo) {
  const ProcessResult result = ShellAcross(R"sh(
    head -c 400000 other > original  # more than one block of tokens, and less than what is read ahead
    across 'write /.out 2' 'cat original >> input' pretokenize -q --threads 4 --format lines input -o out
    [ ! -e out ] || echo "there is an output")sh");
  EXPECT_EQ(result.standard_output, "3\n") << result.standard_error;
}

TEST_F(ChangingInputTest, AFileThatIsRenamedOrReplacedIsReadAsItWasOpened) {
  const ProcessResult result = ShellAcross(R"sh(
    pretokenize -q --format lines original -o whole
    for change in 'mv input renamed' 'cp other new; mv new input' 'rm input' 'ln input link' 'chmod 600 input'; do
      across 'write /.out 2' "$change" pretokenize -q --threads 1 --format lines input -o out
      cmp out whole; rm -f out link renamed
    done)sh");
  EXPECT_EQ(result.standard_output, "0\n0\n0\n0\n0\n") << result.standard_error;
}

}  // namespace
}  // namespace trainwright::test
