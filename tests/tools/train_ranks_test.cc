// Runs of several processes as users start them: `train --nproc`, the variables of launchers, their restarts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

class TrainRanksTest : public TrainProcessTest {
 protected:
  TrainRanksTest() : TrainProcessTest("PRELOAD='" TRAINWRIGHT_SYSCALL_FAULTS "'") {}
  /// `$begin OPTION...` trains into run/, with a short time-out; `at FILE` waits for a file; after `as_two`
  /// it is one of two ranks: RANK says which.
  ProcessResult Train(const std::string& script) {
    WriteModel("tiny.json");
    WriteShards();
    return Shell(R"sh(
      begin='train --model tiny.json --seq 64 --batch 2 --save-every 2 --dist-timeout 5 --out run'
      at() { for i in {1..3000}; do [ -e $1 ] && return; sleep 0.01; done; echo "waited in vain for $1" >&2; exit 98; }
      as_two() {
        export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$(
          python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
      }
)sh" + script);
  }
  int64_t Count(const std::string& type) {
    const auto records = Metrics("run");
    return std::count_if(records.begin(), records.end(),
                         [&](const auto& record) { return record["type"] == type; });
  }
};

TEST_F(TrainRanksTest, WhatSeveralProcessesCannotDoIsRefusedByTheFirst) {
  const struct {
    const char *command, *named;
  } cases[] = {{"train --nproc 0", "--nproc: "},
               {"train --nproc 2 --data -", "--data -: "},
               {"train --nproc 2 --offload gradients", "--offload gradients: "},
               {"train --exact-world 6", "--exact-world: "},
               {"train --exact-world 2 --auto-oom", "--exact-world, --auto-oom: "},
               {"train --exact-world 2 --nproc 4", "--exact-world: "},
               {"train --nproc 2 --zero 3", "--zero 3: "},
               {"train --nproc 2 --zero 1 --compress-state", "--compress-state, --zero 1: "},
               {"train --nproc 2 --zero 2 --compress-model", "--compress-model, --zero 2: "},
               {"train --nproc 2 --zero 1 --async-save on", "--async-save on, --zero 1: "},
               {"train --dist-timeout 0.5", "--dist-timeout: "},
               {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=localhost train --nproc 2", "--nproc: "},
               {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=localhost train --data -", "--data -: "},
               {"RANK=2 WORLD_SIZE=2 train", "RANK, WORLD_SIZE: "},
               {"WORLD_SIZE=2 train", "RANK: "}};
  for (const auto& [command, named] : cases) {
    const ProcessResult refused = Shell(command);
    EXPECT_EQ(refused.exit_status, 2) << command;
    EXPECT_THAT(refused.standard_error, HasSubstr(std::string("error: ") + named)) << command;
    EXPECT_EQ(refused.standard_error.find("error: "), refused.standard_error.rfind("error: ")) << command;
  }
}

TEST_F(TrainRanksTest, OptionsThatCanBeReadOnceAreRefusedByTheFlagOrVariableThatNamesThem) {
  const struct {
    const char *command, *named;
  } cases[] = {{"train --nproc 2 --config <(echo 'lr: 0.01')", "--config: "},
               {"echo 'nproc: 2' | train --config /dev/stdin", "--config: "},
               {"mkfifo pipe; echo 'lr: 0.01' > pipe & TRAINWRIGHT_CONFIG=pipe train --nproc 2",
                "TRAINWRIGHT_CONFIG: "},
               {"train --nproc 2 --deepspeed <(echo '{\"gradient_clipping\": 0.5}')", "--deepspeed: "}};
  for (const auto& [command, named] : cases) {
    const ProcessResult refused = Shell(command);
    EXPECT_EQ(refused.exit_status, 2) << command << refused.standard_error;
    EXPECT_THAT(refused.standard_error, HasSubstr(std::string("error: ") + named)) << command;
    EXPECT_THAT(refused.standard_error, HasSubstr("can be read once only")) << command;
  }
}

TEST_F(TrainRanksTest, AutoOomIsRefusedWhereverAnExactWorldComesFrom) {
  const ProcessResult refused = Train(R"sh(
    printf 'exact-world: 2\nauto-oom: true\n' > both.yaml
    $begin --config both.yaml; echo $?
    $begin -q --exact-world 2 --accum 2 --steps 3 --max-minutes 0.000001  # ends after its first step
    train --resume --out run --auto-oom; echo $?)sh");
  EXPECT_EQ(refused.standard_output, "2\n2\n") << refused.standard_error;
  EXPECT_EQ(Count("run_begin"), 1);
  size_t named = 0;
  const std::string words = "error: --exact-world, --auto-oom: ";
  for (size_t at = 0; (at = refused.standard_error.find(words, at)) != std::string::npos; ++at) ++named;
  EXPECT_EQ(named, 2u) << refused.standard_error;
}

TEST_F(TrainRanksTest, RanksMakeOneRunThatRankZeroTellsOf) {
  const ProcessResult run = Train("$begin --nproc 2 --steps 4 --summary summary.json");
  ASSERT_EQ(run.exit_status, 0) << run.standard_error;
  EXPECT_THAT(run.standard_error, Not(HasSubstr("train[1]")));
  EXPECT_EQ(Count("run_begin"), 1);
  EXPECT_EQ(Count("step"), 4);
  EXPECT_EQ(Count("run_end"), 1);
  EXPECT_EQ(Json("summary.json")["steps"], 4);
  EXPECT_EQ(Json("summary.json")["exit_status"], 0);
  EXPECT_TRUE(Exists("run/complete.json"));
}

TEST_F(TrainRanksTest, TheRankThatTheOthersWaitForIsNamedOnTheConsoleInTheRecordsAndInTheReport) {
  const ProcessResult run = Train("$begin --nproc 2 --steps 4 --summary summary.json");
  ASSERT_EQ(run.exit_status, 0) << run.standard_error;
  EXPECT_THAT(run.standard_error, HasSubstr(" % waiting for rank "));
  const auto expect_told = [](const nlohmann::json& record) {
    EXPECT_THAT(record.value("slowest_rank", -1), AnyOf(0, 1)) << record;
    EXPECT_GT(record.value("rank_wait_share", -1.0), 0) << record;
    EXPECT_LT(record.value("rank_wait_share", 2.0), 1) << record;
  };
  for (const nlohmann::json& record : Metrics("run")) {
    if (record["type"] == "step" || record["type"] == "run_end") expect_told(record);
  }
  expect_told(Json("summary.json"));
  EXPECT_THAT(ReadFile(folder_.path("run/report.html")), HasSubstr(" % waiting for rank "));
}

TEST_F(TrainRanksTest, TheMachineAndThePeakMemoryOfEachRankAreInTheRecordsAndInTheReport) {
  const ProcessResult run =
      Train("$begin --nproc 2 --steps 2 --summary summary.json && uname -n | tr -d '\\n'");
  ASSERT_EQ(run.exit_status, 0) << run.standard_error;
  const std::string host = run.standard_output;
  const auto expect_told = [&](const nlohmann::json& record) {
    EXPECT_EQ(record.value("rank_hosts", std::vector<std::string>()), std::vector<std::string>(2, host));
    const auto peaks = record.value("rank_max_memory_bytes", std::vector<int64_t>());
    ASSERT_EQ(peaks.size(), 2u) << record;
    for (const int64_t peak : peaks) EXPECT_GT(peak, int64_t{10} << 20);
    const auto of_writer = record["max_memory_bytes"].get<double>();  // a moment later; the kernel rounds
    EXPECT_NEAR(static_cast<double>(peaks[0]), of_writer, 0.05 * of_writer);
    EXPECT_FALSE(record.contains("rank_max_device_bytes"));
  };
  expect_told(Metrics("run").back());
  expect_told(Json("summary.json"));
  EXPECT_THAT(run.standard_error, HasSubstr("peak memory of a rank "));
  EXPECT_THAT(ReadFile(folder_.path("run/report.html")), HasSubstr("<td>rank 1</td><td>" + host));
  const ProcessResult checked = Shell("python3 '" + Fixture("train/check_metrics.py") + "' '" +
                                      Fixture("../lib/run/metrics.schema.json") + "' run/metrics.jsonl");
  EXPECT_EQ(checked.exit_status, 0) << checked.standard_output << checked.standard_error;
}

TEST_F(TrainRanksTest, UtilisationIsOverThePeakOfAMachineThatRanksShareOnce) {
  const ProcessResult run = Train("$begin --nproc 2 --steps 2 --peak-tflops 0.5 --summary summary.json");
  ASSERT_EQ(run.exit_status, 0) << run.standard_error;
  std::vector<nlohmann::json> records = Metrics("run");
  records.push_back(Json("summary.json"));
  int told = 0;
  for (const nlohmann::json& record : records) {
    if (!record.contains("mfu")) continue;
    ++told;
    EXPECT_DOUBLE_EQ(record["mfu"].get<double>(), record["model_flops_per_s"].get<double>() / 0.5e12);
  }
  EXPECT_EQ(told, 3) << "two steps and the summary";
}

TEST_F(TrainRanksTest, ARankWithOtherDataIsNamedBeforeAnythingIsWritten) {
  WriteModel("tiny.json");
  WriteShards(600, 300);
  const ProcessResult run = Shell(R"sh(
    free_port() {
      python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
    }
    export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$(free_port)
    begin='train --model tiny.json --seq 64 --batch 2 --steps 100000 --dist-timeout 5 --out run'
    RANK=1 $begin --data other/ 2> one & one=$!
    RANK=0 $begin --data shards/ 2> zero; echo $?
    wait $one; echo $?)sh");
  EXPECT_EQ(run.standard_output, "4\n2\n");
  EXPECT_THAT(ReadFile(folder_.path("one")), HasSubstr("rank 1 (this one): sha256 of the data is "));
  EXPECT_THAT(ReadFile(folder_.path("zero")), HasSubstr("rank 1: sha256 of the data is "));
  EXPECT_FALSE(Exists("run"));
}

TEST_F(TrainRanksTest, ARankThatWouldSendOtherBucketsIsNamedBeforeTheFirstStep) {
  const ProcessResult run = Train(R"sh(
    as_two
    RANK=1 $begin --data shards --ddp-bucket-mb 1 2> one & one=$!
    RANK=0 $begin --data shards 2> zero; echo $?
    wait $one; echo $?)sh");
  EXPECT_EQ(run.standard_output, "4\n2\n");
  EXPECT_THAT(ReadFile(folder_.path("one")), HasSubstr("rank 1 (this one): --ddp-bucket-mb is 1"));
}

TEST_F(TrainRanksTest, ARankWithOtherStartWeightsIsNamedBeforeTheFirstStep) {
  const ProcessResult run = Train(R"sh(
    made() { train -q --model tiny.json --steps 1 --save-model-only --seed $1 --out $2; }
    made 1 base && made 2 stranger || exit
    export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$(
      python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    begin='train --seq 64 --batch 2 --steps 100000 --dist-timeout 5 --out run'
    RANK=1 $begin --init stranger 2> one & one=$!
    RANK=0 $begin --init base 2> zero; echo $?
    wait $one; echo $?)sh");
  EXPECT_EQ(run.standard_output, "4\n2\n") << run.standard_error;
  EXPECT_THAT(ReadFile(folder_.path("one")),
              HasSubstr("rank 1 (this one): XXH3 of the weights at the start is "));
  EXPECT_THAT(ReadFile(folder_.path("zero")), HasSubstr("rank 1: XXH3 of the weights at the start is "));
  EXPECT_EQ(Count("step"), 0);
  EXPECT_EQ(Count("run_end"), 1);
}

TEST_F(TrainRanksTest, ARankThatResumesAnotherCopyOfTheRunIsNamedBeforeTheFirstStep) {
  const ProcessResult run = Train(R"sh(
    made() { train -q --model tiny.json --steps 1 --save-model-only --seed $1 --out $2; }
    made 1 base && made 2 stranger || exit
    begun() { train -q --init $1 --seq 64 --batch 1 --accum 2 --steps 9 --max-minutes 0.000001 --out $2; }
    begun base run && begun stranger copy || exit  # each ends after its first step
    as_two
    RANK=1 train --resume --dist-timeout 5 --out copy 2> one & one=$!
    RANK=0 train --resume --dist-timeout 5 --out run 2> zero; echo $?
    wait $one; echo $?)sh");
  EXPECT_EQ(run.standard_output, "4\n2\n") << run.standard_error;
  EXPECT_THAT(ReadFile(folder_.path("one")),
              HasSubstr("rank 1 (this one): XXH3 of the training state at the start is "));
  EXPECT_THAT(ReadFile(folder_.path("zero")),
              HasSubstr("rank 1: XXH3 of the training state at the start is "));
  EXPECT_EQ(Count("step"), 1);
}

TEST_F(TrainRanksTest, AdaptersOnRandomWeightsAreThoseOfOneProcess) {
  const ProcessResult run = Train(R"sh(
    begin='train -q --model tiny.json --seq 64 --batch 1 --lora 4 --steps 2 --exact-world 2 --dist-timeout 20'
    for quant in none nf4; do
      $begin --quant $quant --accum 2 --out one-$quant || exit
      $begin --quant $quant --nproc 2 --out two-$quant || exit
      cmp one-$quant/latest/adapter_model.safetensors two-$quant/latest/adapter_model.safetensors || exit
      cmp one-$quant/base/model.safetensors two-$quant/base/model.safetensors || exit
    done)sh");
  EXPECT_EQ(run.exit_status, 0) << run.standard_output << run.standard_error;
}

TEST_F(TrainRanksTest, ARankOfAnotherBuildIsNamed) {
  const ProcessResult run = Train(R"sh(
    bin=$(dirname "$(readlink -f "$(command -v train)")")
    mkdir -p other/bin other/libexec/trainwright
    cp $bin/train other/bin/
    engine=other/libexec/trainwright/train-engine
    cp $bin/../libexec/trainwright/train-engine $engine
    id=$(readelf -n $engine | sed -n 's/.*Build ID: //p')
    python3 -c 'import sys
path, build_id = sys.argv[1], bytes.fromhex(sys.argv[2])
program = open(path, "rb").read()
assert program.count(build_id) == 1
open(path, "r+b").write(program.replace(build_id, build_id[::-1]))' $engine $id || exit
    as_two
    RANK=1 other/bin/$begin 2> one & one=$!
    RANK=0 $begin 2> zero; echo $?
    wait $one; echo $?
    echo "rank 1 (this one): build of the program is $(echo $id | fold -w 2 | tac | tr -d '\n'), in rank 0 $id" > told
    grep -qFf told one || cat told one)sh");
  EXPECT_EQ(run.standard_output, "4\n2\n") << run.standard_error;
  EXPECT_FALSE(Exists("run"));
}

TEST_F(TrainRanksTest, ARankWithOtherInstructionsIsNamedBeforeAnythingIsWritten) {
  const ProcessResult run = Train(R"sh(
    as_two
    ATEN_CPU_CAPABILITY=default RANK=1 $begin --data shards 2> one & one=$!
    RANK=0 $begin --data shards 2> zero; echo $?
    wait $one; echo $?)sh");
  EXPECT_EQ(run.standard_output, "4\n2\n") << run.standard_error;
  EXPECT_THAT(ReadFile(folder_.path("one")), HasSubstr("rank 1 (this one): CPU capability is DEFAULT"));
  EXPECT_THAT(ReadFile(folder_.path("zero")), HasSubstr("rank 1: CPU capability is DEFAULT"));
  EXPECT_FALSE(Exists("run"));
}

TEST_F(TrainRanksTest, WhatIsWrongOnAllRanksAlikeIsToldOnce) {
  const ProcessResult run = Train(R"sh(
    for wrong in '--data nowhere' '--data shards --warmup-ratio 2'; do
      $begin -q $wrong 2> one; one=$?
      $begin -q $wrong --nproc 3 2> three; [ $? = $one ] || echo "$wrong: another status"
      grep -q 'error: ' one && cmp one three
    done)sh");
  EXPECT_EQ(run.exit_status, 0) << run.standard_error;
  EXPECT_EQ(run.standard_output, "");
}

TEST_F(TrainRanksTest, WhatAllRanksWouldWarnOfAlikeIsToldOnce) {
  const ProcessResult run = Train(R"sh(
    $begin --nproc 3 --steps 1 --empty-cache-every 1 --compile graph 2> log || cat log
    for warning in '--empty-cache-every' '--compile graph'; do grep -c -e "warning: $warning has no effect" log; done)sh");
  EXPECT_EQ(run.standard_output, "1\n1\n") << ReadFile(folder_.path("log"));
}

TEST_F(TrainRanksTest, OnSeveralRanksTheCheckpointsOfTheLowestEvaluationLossesStay) {
  WriteModel("tiny.json");
  WriteShards();
  const ProcessResult run = Shell(R"sh(
    # So high a learning rate makes the model worse after two steps: the first checkpoints are the best.
    yes 0123456789 | head -n 200 | pretokenize -q - | pack -q --chunk 256 -o digits/ || exit
    train -q --model tiny.json --data shards --seq 64 --batch 2 --nproc 2 --dist-timeout 20 --lr 0.1 --warmup 0 \
      --eval-data digits --steps 6 --save-every 1 --keep 1 --keep-best 2 --out run || exit
    ls run/checkpoints; basename $(readlink run/best))sh");
  ASSERT_EQ(run.exit_status, 0) << run.standard_error;
  std::vector<std::pair<double, int64_t>> evaluations;
  for (const nlohmann::json& record : Metrics("run")) {
    if (record["type"] == "eval" && record["step"] > 0) {
      evaluations.emplace_back(record["loss_nats"].get<double>(), record["step"].get<int64_t>());
    }
  }
  ASSERT_EQ(evaluations.size(), 6u) << "one a checkpoint";
  std::sort(evaluations.begin(), evaluations.end());
  const std::set<int64_t> kept = {evaluations[0].second, evaluations[1].second, 6};
  ASSERT_EQ(kept.size(), 3u) << "the last checkpoint is none of the best";
  const auto name = [](int64_t step) { return "step-0000000" + std::to_string(step) + "\n"; };
  std::string expected;
  for (const int64_t step : kept) expected += name(step);
  EXPECT_EQ(run.standard_output, expected + name(evaluations[0].second));
}

TEST_F(TrainRanksTest, ARunRemembersHowManyItsRanksAre) {
  const ProcessResult run = Train(R"sh(
    $begin -q --nproc 2 --steps 2 && train --resume --out run --print-config | grep ^nproc:)sh");
  EXPECT_EQ(run.standard_output, "nproc: 2\n") << run.standard_error;
}

TEST_F(TrainRanksTest, AnExactRunGoesOnWithTheThreadsThatItHad) {
  const ProcessResult run = Train(R"sh(
    unset TRAINWRIGHT_THREADS
    threads() { python3 -c 'import json, sys
print(json.load(open(sys.argv[1] + "/metadata.json"))["system_info"]["threads"])' run/latest; }
    begin="$begin --exact-world 2 --steps 4 --max-minutes 0.000001"  # a step each
    taskset -c $(taskset -cp $$ | grep -o '[0-9]*$') $begin --nproc 2 2> first || exit
    threads
    train --resume --out run --nproc 1 --max-minutes 0.000001 2> second || exit
    threads
    train --resume --out run --nproc 1 --threads 3 2> third || exit
    threads)sh");
  EXPECT_EQ(run.standard_output, "1\n1\n3\n") << run.standard_error;
  EXPECT_THAT(ReadFile(folder_.path("first")),
              HasSubstr("hint: the bits of --exact-world depend on the threads"));
  EXPECT_THAT(ReadFile(folder_.path("second")), HasSubstr("--threads 1, as the run had"));
  EXPECT_THAT(ReadFile(folder_.path("second")), Not(HasSubstr("warning: threads")));
  EXPECT_THAT(
      ReadFile(folder_.path("third")),
      HasSubstr("warning: threads 3 instead of the run's 1: the equal bits of --exact-world end here"));
}

TEST_F(TrainRanksTest, RanksThatDivideTheirStateWriteTheFilesOfOneProcess) {
  WriteModel("blocks.json", TinyLlamaOf(/*hidden_size=*/128, /*layers=*/2));
  WriteShards();
  const ProcessResult run = Shell(R"sh(
    begin='train -q --model blocks.json --seq 64 --batch 1 --steps 4 --save-every 2 --keep 0 --exact-world 2'
    begin="$begin --mixed-precision bf16 --dist-timeout 20"
    $begin --accum 2 --out one || exit
    for zero in 1 2; do
      $begin --nproc 2 --zero $zero --out zero-$zero || exit
      cp -r zero-$zero resumed-$zero
      rm -r resumed-$zero/checkpoints/step-00000004 resumed-$zero/complete.json
    done
    train -q --resume --out resumed-1 --nproc 1 || exit
    train -q --resume --out resumed-2 --nproc 2 --zero 1 || exit
    # Of weights the whole file; of a state, whose header names the run's processes, the tensors.
    tensors() { python3 -c 'import hashlib, sys
content = open(sys.argv[1], "rb").read()
print(hashlib.sha256(content[8 + int.from_bytes(content[:8], "little"):]).hexdigest())' $1; }
    for run in one zero-1 zero-2 resumed-1 resumed-2; do
      sha256sum < $run/checkpoints/step-00000004/model.safetensors
      tensors $run/checkpoints/step-00000004/trainwright_state.safetensors
    done | sort | uniq -c | sed 's/^ *//; s/ .*//')sh");
  EXPECT_EQ(run.standard_output, "5\n5\n") << run.standard_error;
  EXPECT_EQ(WeightsOf("zero-2"), WeightsOf("one"));
}

TEST_F(TrainRanksTest, ASignalToTheLauncherSavesAndEndsAllRanks) {
  const ProcessResult run = Train(R"sh(
    $begin --nproc 2 --steps 100000 --save-every 0 & launcher=$!
    at run/metrics.jsonl
    until grep -q '"type":"step"' run/metrics.jsonl; do sleep 0.05; done
    kill -TERM $launcher; wait $launcher; echo $?)sh");
  EXPECT_EQ(run.standard_output, "143\n") << run.standard_error;
  EXPECT_TRUE(Exists("run/latest/model.safetensors")) << run.standard_error;
}

TEST_F(TrainRanksTest, ASignalToOneRankSavesAndEndsAll) {
  const ProcessResult run = Train(R"sh(
    as_two
    RANK=1 $begin --data shards --steps 100000 --save-every 0 & one=$!
    RANK=0 $begin --data shards --steps 100000 --save-every 0 & zero=$!
    at run/metrics.jsonl
    until grep -q '"type":"step"' run/metrics.jsonl; do sleep 0.05; done
    kill -TERM $one; wait $one; echo $?; wait $zero; echo $?
    train -q --status run; echo $?)sh");
  EXPECT_THAT(run.standard_output, testing::StartsWith("143\n143\n")) << run.standard_error;
  EXPECT_THAT(run.standard_output, testing::EndsWith("\n1\n")) << "1: whole and not complete";
  EXPECT_TRUE(Exists("run/latest/model.safetensors")) << run.standard_error;
}

TEST_F(TrainRanksTest, WhereTheDiskOfRankZeroIsFullAllEndAndTheRunGoesOnToTheSameWeights) {
  const ProcessResult run = Train(R"sh(
    begin=${begin% --out run}
    for zero in 0 1; do
      options="--data shards --steps 6 --exact-world 2 --zero $zero"
      $begin -q --nproc 2 $options --out whole-$zero || exit
      (
        as_two
        RANK=1 $begin -q $options --out full-$zero 2> one-$zero & one=$!
        RANK=0 LD_PRELOAD=$PRELOAD SYSCALL_FAULT='write step-00000004 1 ENOSPC...' \
          $begin -q $options --out full-$zero 2> zero-$zero
        echo $?; wait $one; echo $?
      )
      readlink full-$zero/latest
      train -q --resume --out full-$zero --nproc 2 || exit
      cmp {whole,full}-$zero/latest/model.safetensors && echo same
    done)sh");
  const std::string each = "4\n4\ncheckpoints/step-00000002\nsame\n";
  EXPECT_EQ(run.standard_output, each + each) << run.standard_error;
  for (const std::string zero : {"0", "1"}) {
    EXPECT_THAT(ReadFile(folder_.path("zero-" + zero)), HasSubstr("No space left on device"));
    EXPECT_THAT(ReadFile(folder_.path("one-" + zero)),
                testing::AllOf(HasSubstr("rank 0"), HasSubstr("No space left on device")));
  }
}

TEST_F(TrainRanksTest, WhereOneRankRunsOutOfMemoryAllGoOnInSmallerMicroBatches) {
  WriteModel("deep.json", TinyLlamaOf(/*hidden_size=*/64, /*layers=*/8));
  const ProcessResult run = Train(R"sh(
    begin='train --model deep.json --data shards --seq 128 --steps 2 --save-every 0 --async-save off'
    as_two
    ( ulimit -d 400000; RANK=1 exec $begin --batch 128 --auto-oom --out halved ) 2> one & one=$!
    RANK=0 $begin --batch 128 --auto-oom --out halved 2> zero; echo $?
    wait $one; echo $?)sh");
  const auto log = [&](const char* name) { return ReadFile(folder_.path(name)); };
  ASSERT_EQ(run.standard_output, "0\n0\n") << log("zero") << log("one");
  int64_t accum = 0;
  std::string warning;
  for (const nlohmann::json& record : Metrics("halved")) {
    if (record["type"] == "warning") warning += record["message"].get<std::string>();
    if (record["type"] == "step") accum = record["accum"];
  }
  EXPECT_THAT(warning, testing::AllOf(testing::StartsWith("out of memory, "), HasSubstr("rank 1")));
  ASSERT_GT(accum, 1);
  const std::string split = " --batch " + std::to_string(128 / accum) + " --accum " + std::to_string(accum);
  const ProcessResult same =
      Shell("train -q --model deep.json --data shards --seq 128 --steps 2 --nproc 2 --out same" + split +
            " && cmp same/latest/model.safetensors halved/latest/model.safetensors");
  EXPECT_EQ(same.exit_status, 0) << same.standard_output << same.standard_error;
}

TEST_F(TrainRanksTest, ARankThatIsKilledIsNamedAndEndsTheOthers) {
  const ProcessResult run = Train(R"sh(
    $begin --nproc 2 --steps 100000 & launcher=$!
    at run/latest
    for process in /proc/[0-9]*; do
      grep -sq "^PPid:[[:space:]]$launcher$" $process/status &&
        tr '\0' '\n' < $process/environ | grep -qx RANK=1 && kill -KILL ${process#/proc/}
    done
    wait $launcher; echo $?
    train -q --status run; echo $?)sh");
  EXPECT_THAT(run.standard_output, testing::StartsWith("137\n"));
  EXPECT_THAT(run.standard_output, testing::EndsWith("\n1\n")) << "1: whole and not complete";
  EXPECT_THAT(run.standard_error, HasSubstr("train: error: rank 1: was killed by signal 9"));
  std::istringstream lines(run.standard_error);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_THAT(line, testing::StartsWith("train")) << "a line of LibTorch's own";
  }
}

TEST_F(TrainRanksTest, AfterTheLossOfAnotherRankNoCopyIsWaitedFor) {
  const ProcessResult run = Train(R"sh(
    export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$(
      python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    copy=': $TRAINWRIGHT_CHECKPOINT; echo $$ > copying; exec sleep 600'
    RANK=1 $begin --steps 100000 2> one & one=$!
    RANK=0 $begin --steps 100000 --copy-command "$copy" 2> zero & zero=$!
    at copying
    kill -KILL $one
    killed=$SECONDS
    wait $zero; echo $?
    [ $((SECONDS - killed)) -lt 60 ] || echo "it waited"
    kill -0 $(cat copying) 2> /dev/null && echo "the copy goes on"
    unset WORLD_SIZE MASTER_ADDR MASTER_PORT
    train -q --resume --out run --nproc 1 --max-minutes 0.000001 --copy-command 'echo >> copies; :'; echo $?
    [ -s copies ] || echo "no copy is made up for")sh");
  EXPECT_EQ(run.standard_output, "4\n0\n") << run.standard_error;
  const std::string told = ReadFile(folder_.path("zero"));
  EXPECT_THAT(told, HasSubstr("error: rank 1: killed, stopped or cut off")) << told;
  EXPECT_THAT(told, HasSubstr(" no copy, as the ranks end and do not wait: --resume makes")) << told;
}

TEST_F(TrainRanksTest, WhatARankStartsIsNoRank) {
  const ProcessResult run =
      Train(R"sh($begin --nproc 2 --steps 2 --copy-command 'env > copy.env; : $TRAINWRIGHT_CHECKPOINT'
    grep -c ^PATH= copy.env; grep -E '^(RANK|WORLD_SIZE|TRAINWRIGHT_LOCAL_STORE)=' copy.env || echo none)sh");
  EXPECT_EQ(run.standard_output, "1\nnone\n") << run.standard_error;
}

TEST_F(TrainRanksTest, ARestartByTheLauncherGoesOnByTheSameCommandLine) {
  const ProcessResult run = Train(R"sh(
    $begin -q --steps 3 --max-minutes 0.000001 || exit  # ends after its first step
    $begin -q --steps 3 && exit 97                      # by the user: refused
    export TORCHELASTIC_RESTART_COUNT=1
    $begin --steps 3 || exit
    $begin -q --steps 3)sh");
  EXPECT_EQ(run.exit_status, 0) << run.standard_error;
  EXPECT_THAT(run.standard_error, HasSubstr("started again by its launcher: continuing run"));
  EXPECT_EQ(Count("step"), 3);
}

TEST_F(TrainRanksTest, ARestartOfARunThatHasNotBegunBeginsIt) {
  const ProcessResult run = Train("TORCHELASTIC_RESTART_COUNT=1 $begin --steps 1");
  EXPECT_EQ(run.exit_status, 0) << run.standard_error;
  EXPECT_EQ(Count("step"), 1);
}

}  // namespace
}  // namespace trainwright::test
