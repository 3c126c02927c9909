// The tool `train` as a process: kill -9 and resume, signals, refusals, pipes, metrics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

class TrainToolTest : public TrainProcessTest {
 protected:
  TrainToolTest()
      : TrainProcessTest("PRELOAD='" TRAINWRIGHT_SYSCALL_FAULTS
                         "' TRAINWRIGHT_MODEL=tiny.json TRAINWRIGHT_BATCH=2") {}
  void SetUp() override {
    WriteModel("tiny.json");
    WriteShards(600, 200);
  }
  /// With await CONDITION, which waits until it holds.
  ProcessResult Shell(const std::string& script) {
    return TrainProcessTest::Shell(R"(
      await() {
        for _ in $(seq 3000); do eval "$1" 2> /dev/null && return; sleep 0.02; done
        echo "waited in vain for: $1" >&2; exit 98
      }
    )" + script);
  }
  ProcessResult CheckMetrics(const std::string& path) {
    return Shell("python3 '" + Fixture("train/check_metrics.py") + "' '" +
                 Fixture("../lib/run/metrics.schema.json") + "' '" + path + "'");
  }
  /// Makes `run` of three processes, of which the first is killed and its last event torn; prints how many
  /// event files there are.
  ProcessResult KillTearAndResume() {
    return Shell(R"(
      set -- --out run --eval-data other --eval-every 4 --eval-tokens 500 --peak-tflops 1
      train --steps 3000 --save-every 5 "$@" 2> /dev/null &
      await '[ -e run/checkpoints/step-00000010 ] && grep -q "\"step\":13," run/metrics.jsonl'
      kill -9 $!; wait $!
      head -c 30 run/tb/events.out.tfevents.0000000001.trainwright > torn
      cat torn >> run/tb/events.out.tfevents.0000000001.trainwright
      train --resume "$@" --max-minutes 0.03 && train --resume "$@" --max-minutes 0.001
      ls run/tb | wc -l)");
  }
  ProcessResult CheckCurves(const std::string& rest) {
    return Shell("\"${PYTHON:-python3}\" '" + Fixture("train/check_tensorboard.py") + "' run " + rest);
  }
};

TEST_F(TrainToolTest, InitStartsFromTheWeightsOfAnotherModelAndRecordsThem) {
  // A step size that changes no fp32 weight: what is written is what was read.
  const ProcessResult run = Shell(R"(
    train --steps 2 --out first && unset TRAINWRIGHT_MODEL &&
    train --init first --steps 2 --lr 1e-30 --weight-decay 0 --out second --max-minutes 0.00001 &&
    train --init first --steps 2 --lr 1e-30 --weight-decay 0 --out second --resume)");
  ASSERT_EQ(run.exit_status, 0) << run.standard_error;
  EXPECT_EQ(WeightsOf("second"), WeightsOf("first"));
  const auto metadata = nlohmann::json::parse(ReadFile(folder_.path("second/latest/metadata.json")));
  EXPECT_THAT(WeightsOf("first"),
              testing::HasSubstr(metadata["provenance"]["init"]["files"]["model.safetensors"]));
}

TEST_F(TrainToolTest, InitRefusesAModelOfAnotherTokenizerAndAModelBesideIt) {
  const ProcessResult other =
      Shell("unset TRAINWRIGHT_MODEL; train --init '" + Fixture("model/fixtures/untied") + "' --out run");
  EXPECT_EQ(other.exit_status, 3);
  EXPECT_THAT(other.standard_error, testing::HasSubstr("hint: pretokenize"));
  EXPECT_FALSE(Exists("run"));
  const ProcessResult both =
      Shell("train --model llama-1m --init '" + Fixture("model/fixtures/untied") + "' --out run");
  EXPECT_EQ(both.exit_status, 2);
  EXPECT_THAT(both.standard_error, testing::HasSubstr("--init"));
}

class TrainKillTest : public TrainToolTest, public testing::WithParamInterface<const char*> {};

TEST_P(TrainKillTest, ResumeAfterKillNineEqualsTheUninterruptedRun) {
  const std::string precision = GetParam();
  // Saving every third step makes it likely that some kill falls into a save.
  const std::string train =
      "train --steps 120 --save-every 3 --keep 2 --eval-data other --eval-every 40 "
      "--mixed-precision " +
      precision;
  const ProcessResult whole = Shell(train + " --async-save off --out whole");
  ASSERT_EQ(whole.exit_status, 0) << whole.standard_error;

  const ProcessResult killed = Shell("RANDOM=" + std::to_string(TestSeed()) + "; train=\"" + train + R"(" 
    status=1; kills=0; in_save=0; resumed=0
    while [ $status != 0 ]; do
      # Four times at any system call of some save, then twice at any moment (if the run is not over before).
      fault=; [ $in_save = 4 ] || fault="any /.step- $((RANDOM % 150 + 1)) KILL"
      LD_PRELOAD=$PRELOAD SYSCALL_FAULT=$fault $train --async-save on --out killed --resume 2> log & pid=$!
      if [ -z "$fault" ] && [ $kills -lt 6 ]; then
        sleep 0.$((RANDOM % 300 + 100)); kill -9 $pid 2> /dev/null
      fi
      wait $pid; status=$?
      [ $status != 137 ] || kills=$((kills + 1))
      [ $status != 137 ] || [ -z "$fault" ] || in_save=$((in_save + 1))
      if [ $status != 0 ] && [ $status != 137 ]; then cat log; exit $status; fi
      grep -q 'continuing at step' log && resumed=$((resumed + 1))
      # Whatever a kill left, what `latest` names is whole.
      if [ -e killed/latest ]; then
        python3 - killed/latest <<'CHECK' || exit 99
import hashlib, json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
for name, entry in json.loads((folder / "metadata.json").read_text())["files"].items():
    assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == entry["sha256"], name
CHECK
      fi
    done
    echo "$kills kills, $in_save in saves, $resumed resumptions"; [ $in_save = 4 ] && [ $resumed -ge 1 ])");
  ASSERT_EQ(killed.exit_status, 0) << killed.standard_output << killed.standard_error;
  SCOPED_TRACE("seed " + std::to_string(TestSeed()) + ": " + killed.standard_output);
  EXPECT_EQ(WeightsOf("killed"), WeightsOf("whole"));
  EXPECT_EQ(
      Shell("cmp killed/latest/trainwright_state.safetensors whole/latest/trainwright_state.safetensors")
          .exit_status,
      0);

  // The metrics, too, read as one run, and tell the same losses.
  const ProcessResult checked = CheckMetrics("killed/metrics.jsonl");
  EXPECT_EQ(checked.exit_status, 0) << checked.standard_error;
  std::vector<double> losses_nats[2];
  for (const int i : {0, 1}) {
    for (const nlohmann::json& record : Metrics(i == 0 ? "whole" : "killed")) {
      if (record["type"] == "step" || record["type"] == "eval") losses_nats[i].push_back(record["loss_nats"]);
    }
  }
  EXPECT_EQ(losses_nats[0], losses_nats[1]);
}

INSTANTIATE_TEST_SUITE_P(Precisions, TrainKillTest, testing::Values("no", "bf16", "fp16"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(TrainToolTest, AGpt2ResumesToTheSameWeightsAndIsEvaluatedAndContinued) {
  WriteFile(folder_.path("gpt2.json"), R"({"model_type": "gpt2", "vocab_size": 258, "n_embd": 32,
    "n_layer": 2, "n_head": 2, "n_positions": 64, "activation_function": "gelu_new"})");
  const ProcessResult result = Shell(R"(
    set -e; export TRAINWRIGHT_MODEL=gpt2.json
    train -q --steps 8 --save-every 4 --keep 2 --out whole
    cp -r whole half; rm -r half/checkpoints/step-00000008; ln -sfn checkpoints/step-00000004 half/latest
    train --out half --resume
    evaluate -q --checkpoint whole --data other > evaluation.json
    generate -q --checkpoint whole --prompt 'O Romeo' --max-tokens 80)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_NE(result.standard_error.find("continuing at step 4"), std::string::npos) << result.standard_error;
  EXPECT_EQ(WeightsOf("half"), WeightsOf("whole"));
  EXPECT_EQ(nlohmann::json::parse(result.standard_output)["finish"], "context");  // 64 learned positions
}

TEST_F(TrainToolTest, BareRunNamesItsFolderAndPrintsWhatToDoNext) {
  const ProcessResult result = Shell("train --steps 3 --accum 2; train --steps 2");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "");
  for (const char* expected : {"run runs/custom-001", "run runs/custom-002", " tokens a step, ",
                               "training loss ", "checkpoint runs/custom-001/checkpoints/step-00000003",
                               "weights sha256 ", "next: generate --checkpoint "}) {
    EXPECT_NE(result.standard_error.find(expected), std::string::npos) << expected << "\n"
                                                                       << result.standard_error;
  }
  EXPECT_NE(result.standard_error.find("weights sha256 " + WeightsOf("runs/custom-001").substr(0, 64)),
            std::string::npos);
}

TEST_F(TrainToolTest, ConfigYamlOfARunRepeatsIt) {
  const ProcessResult result = Shell(R"(
    train --steps 4 --accum 3 --lr 0.002 --seed 5 --schedule linear --warmup 1 --out a &&
    env -u TRAINWRIGHT_BATCH train --config a/config.yaml --out b)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(WeightsOf("b"), WeightsOf("a"));
}

TEST_F(TrainToolTest, APipeTrainsTheSameModelAsTheFolder) {
  const ProcessResult result = Shell(R"(
    train --steps 5 --data shards --out folder &&
    head -n 600 $DATA/tinyshakespeare.txt | pretokenize -q - | pack -q --chunk 256 |
      train --steps 5 --data - --cache-dir . --out pipe)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(WeightsOf("pipe"), WeightsOf("folder"));
}

TEST_F(TrainToolTest, ACutPipeIsRefusedBeforeAnythingIsWritten) {
  const ProcessResult result = Shell(R"(
    head -n 600 $DATA/tinyshakespeare.txt | pretokenize -q - | pack -q --chunk 256 | head -c 5000 |
      train --steps 5 --data - --cache-dir . --out pipe)");
  EXPECT_EQ(result.exit_status, 3) << result.standard_error;
  EXPECT_FALSE(Exists("pipe"));
}

TEST_F(TrainToolTest, AFirstInterruptSavesAndTheRunGoesOn) {
  const ProcessResult result = Shell(R"(
    train --steps 300 --out whole 2> /dev/null || exit 1
    for signal in INT TERM HUP; do
      train --steps 300 --out $signal 2> log & pid=$!
      await "grep -q '\"step\":5,' $signal/metrics.jsonl"
      kill -$signal $pid; wait $pid; echo $signal $?
      grep -q 'everything is saved' log || exit 2
      tail -n 1 $signal/metrics.jsonl | grep -o '"exit_status":[0-9]*,"reason":"signal"'
      train --resume --out $signal 2> /dev/null || exit 3
    done)");
  // A background process of a script ignores SIGINT unless it installs a handler, as train does.
  EXPECT_EQ(result.standard_output,
            "INT 130\n\"exit_status\":130,\"reason\":\"signal\"\n"
            "TERM 143\n\"exit_status\":143,\"reason\":\"signal\"\n"
            "HUP 143\n\"exit_status\":143,\"reason\":\"signal\"\n");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(WeightsOf("INT"), WeightsOf("whole"));
  EXPECT_EQ(WeightsOf("TERM"), WeightsOf("whole"));
  EXPECT_EQ(WeightsOf("HUP"), WeightsOf("whole"));
}

TEST_F(TrainToolTest, AClosedTerminalSavesUnlessNohupIsThere) {
  const ProcessResult result = Shell(R"sh(
    cat > close.py << 'PYTHON'
import os, pty, sys, time
process, terminal = pty.fork()
if process == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
while not os.path.exists(sys.argv[1]) or '"step":5,' not in open(sys.argv[1]).read():
    time.sleep(0.01)
os.close(terminal)
print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
PYTHON
    python3 close.py closed/metrics.jsonl train -q --steps 300 --out closed
    tail -n 1 closed/metrics.jsonl | grep -o '"exit_status":[0-9]*,"reason":"[^"]*"'; ls closed/latest/metadata.json
    python3 close.py kept/metrics.jsonl nohup train -q --steps 60 --out kept
    tail -n 1 kept/metrics.jsonl | grep -o '"exit_status":[0-9]*,"reason":"[^"]*"')sh");
  EXPECT_EQ(result.standard_output,
            "143\n\"exit_status\":143,\"reason\":\"signal\"\nclosed/latest/metadata.json\n"
            "0\n\"exit_status\":0,\"reason\":\"complete\"\n")
      << result.standard_error;
}

TEST_F(TrainToolTest, ASignalBeforeTheFirstStepOrInASaveSaves) {
  const ProcessResult result = Shell(R"sh(
    train --steps 40 --out whole 2> /dev/null || exit 1
    check() {
      LD_PRELOAD=$PRELOAD SYSCALL_FAULT=$2 \
        train --steps 40 --save-every 10 --async-save off --eval-data other --out $1 2> log
      echo "$1: $? $(readlink $1/latest), $(grep -c '"type":"eval"' $1/metrics.jsonl) evaluations"
      train --resume --out $1 2> /dev/null
      ls -A $1/checkpoints | grep '^[.]'; cmp $1/latest/model.safetensors whole/latest/model.safetensors
    }
    check before 'write /metrics.jsonl 1 INT'
    check saving 'fsync /.step-00000010 2 TERM'
    check twice 'fsync /.step-00000020 2 INT+INT'
    # In the background the run is some steps further: those are saved, too.
    for signals in TERM INT INT+INT TERM+TERM TERM+INT; do
      LD_PRELOAD=$PRELOAD SYSCALL_FAULT="fsync /.step-00000020 2 $signals" \
        train --steps 40 --save-every 10 --async-save on --out $signals 2> log
      echo "$signals: $? $([ $(basename $(readlink $signals/latest)) '>' step-00000010 ] && echo saved)"
      tail -n 1 $signals/metrics.jsonl | grep -o '"reason":"[^"]*"'
      train --resume --out $signals 2> /dev/null
      ls -A $signals/checkpoints | grep '^[.]'
      cmp $signals/latest/model.safetensors whole/latest/model.safetensors
    done)sh");
  // The first finds its signal in the evaluation that precedes the first step; the last stops at once.
  EXPECT_EQ(result.standard_output,
            "before: 130 checkpoints/step-00000000, 0 evaluations\n"
            "saving: 143 checkpoints/step-00000010, 2 evaluations\n"
            "twice: 130 checkpoints/step-00000010, 3 evaluations\n"
            "TERM: 143 saved\n\"reason\":\"signal\"\n"
            "INT: 130 saved\n\"reason\":\"signal\"\n"
            "INT+INT: 130 \n"
            // timeout(1) sends SIGTERM twice, to the process and to its group.
            "TERM+TERM: 143 saved\n\"reason\":\"signal\"\n"
            "TERM+INT: 130 \n")
      << result.standard_error;
}

TEST_F(TrainToolTest, CheckpointsByStepsOrTimeAreRotatedAndChangeNothing) {
  const ProcessResult result = Shell(R"(
    for every in x -5m 1.5 0s 10min; do
      train --steps 2 --save-every "$every" --out junk 2> /dev/null; echo "$every $?" junk*
    done
    check() {
      train --steps 20 --save-every $1 --keep $2 --out $1 2> log || cat log
      written=$(grep -c '"type":"checkpoint"' $1/metrics.jsonl)
      echo $1 --keep $2: $written written, $(ls -A $1/checkpoints | cut -c 11-)
    }
    check 7 2; check 0 3; check 1h 3; check 0.000001s 2; check 6 0)");
  EXPECT_EQ(result.standard_output,
            "x 2 junk*\n-5m 2 junk*\n1.5 2 junk*\n0s 2 junk*\n10min 2 junk*\n"
            "7 --keep 2: 3 written, 014 020\n"
            "0 --keep 3: 1 written, 020\n"
            "1h --keep 3: 1 written, 020\n"
            "0.000001s --keep 2: 20 written, 019 020\n"
            "6 --keep 0: 4 written, 006 012 018 020\n")
      << result.standard_error;
  const auto steps = [&](const std::string& run) {
    std::string text;
    for (const nlohmann::json& record : Metrics(run)) {
      if (record["type"] == "step") text += record["lr"].dump() + " " + record["loss_nats"].dump() + "\n";
    }
    return text;
  };
  for (const char* run : {"7", "1h", "0.000001s", "6"}) {
    EXPECT_EQ(WeightsOf(run), WeightsOf("0")) << run;
    EXPECT_EQ(steps(run), steps("0")) << run;
  }
}

TEST_F(TrainToolTest, ATimeLimitSavesAndTheRunGoesOn) {
  const ProcessResult result = Shell(R"(
    train --steps 50 --out whole && train --steps 50 --out timed --max-minutes 0.00001 &&
    readlink timed/latest && train --resume --out timed)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "checkpoints/step-00000001\n");
  EXPECT_EQ(WeightsOf("timed"), WeightsOf("whole"));
}

TEST_F(TrainToolTest, TwoProcessesDoNotTrainInOneRunWhileReadersAreFree) {
  const ProcessResult result = Shell(R"(
    train --steps 60 --out whole 2> /dev/null || exit 1
    LD_PRELOAD=$PRELOAD SYSCALL_FAULT='rename /latest 4 STOP' \
      train --steps 60 --save-every 5 --out run 2> /dev/null & pid=$!
    await 'grep -q "^State:.T" /proc/$pid/status'
    train --steps 60 --out run; echo $?
    train --resume --out run; echo $?
    evaluate --quiet --checkpoint run --data other > /dev/null; echo evaluate $?
    kill -9 $pid; wait $pid 2> /dev/null
    train --resume --out run 2> /dev/null; echo $?)");
  EXPECT_EQ(result.standard_output, "2\n2\nevaluate 0\n0\n") << result.standard_error;
  EXPECT_NE(result.standard_error.find("is in use by another process"), std::string::npos)
      << result.standard_error;
  EXPECT_EQ(WeightsOf("run"), WeightsOf("whole"));
}

TEST_F(TrainToolTest, OtherDataIsRefusedUnlessAllowed) {
  const ProcessResult result = Shell(R"(
    train --steps 6 --max-minutes 0.00001 --out run 2> /dev/null || exit 1
    train --resume --out run --data other; echo $?
    train --resume --out run --data other --allow-data-change; echo $?)");
  EXPECT_EQ(result.standard_output, "3\n0\n") << result.standard_error;
  EXPECT_NE(result.standard_error.find("--allow-data-change"), std::string::npos);
  EXPECT_NE(result.standard_error.find("warning: the data changed"), std::string::npos);
}

TEST_F(TrainToolTest, AResumedRunKeepsItsPlan) {
  const ProcessResult result = Shell(R"(
    train --steps 6 --max-minutes 0.00001 --out run 2> /dev/null || exit 1
    train --resume --out run --lr 0.5; echo $?
    train --resume --out run --batch 1 --threads 2; echo $?)");
  EXPECT_EQ(result.standard_output, "2\n0\n") << result.standard_error;
  EXPECT_NE(result.standard_error.find("error: --lr: 0.5 differs from the run's"), std::string::npos)
      << result.standard_error;
  EXPECT_NE(result.standard_error.find("warning: micro-batches of 1 samples"), std::string::npos);
  EXPECT_NE(result.standard_error.find("warning: threads 2 instead of the run's 1"), std::string::npos);
}

TEST_F(TrainToolTest, ACompleteRunIsLeftAlone) {
  const ProcessResult result = Shell(R"(
    train --steps 3 --out run 2> /dev/null; sha256sum run/metrics.jsonl
    train --resume 2> err; echo $?; mkdir runs; mv run runs/x
    train --resume; echo $?; sha256sum < runs/x/metrics.jsonl)");
  const std::string& text = result.standard_output;
  EXPECT_NE(text.find("\n2\n0\n"), std::string::npos) << text << result.standard_error;
  EXPECT_EQ(text.substr(0, 64), text.substr(text.find("\n2\n0\n") + 5, 64));
  EXPECT_NE(result.standard_error.find("the run is complete"), std::string::npos) << result.standard_error;
}

TEST_F(TrainToolTest, AMachineWithTooLittleMemoryIsNoBugAndTheMessageNamesTheFlags) {
  const ProcessResult result = Shell(R"(
    sed 's/"vocab_size": 258/"vocab_size": 100000000/' tiny.json > huge.json  # 12.8 GB of embeddings
    ulimit -v 8000000; train -q --model huge.json --steps 1 --out run)");
  EXPECT_EQ(result.exit_status, 4);
  EXPECT_THAT(result.standard_error,
              testing::HasSubstr("train: error: memory: can't allocate memory: you tried to allocate 12800"));
  EXPECT_THAT(result.standard_error,
              testing::HasSubstr("\ntrain: hint: in this order: weights with gradients and moments, "));
}

TEST_F(TrainToolTest, MissingDataSaysHowToMakeIt) {
  const ProcessResult result = Shell("rm -r shards; train");
  EXPECT_EQ(result.exit_status, 4);
  EXPECT_NE(result.standard_error.find("pretokenize FILE... | pack"), std::string::npos)
      << result.standard_error;
  EXPECT_FALSE(Exists("runs"));
}

TEST_F(TrainToolTest, AnExistingRunIsNotOverwritten) {
  const ProcessResult result = Shell("train --steps 2 --out run 2> /dev/null && train --steps 2 --out run");
  EXPECT_EQ(result.exit_status, 2);
  EXPECT_NE(result.standard_error.find("--resume"), std::string::npos) << result.standard_error;
}

TEST_F(TrainToolTest, DivergenceIsStatus6AndLeavesTheLastCheckpoint) {
  const ProcessResult result = Shell("train --steps 50 --save-every 1 --lr 1e30 --warmup 0 --out run");
  EXPECT_EQ(result.exit_status, 6);
  EXPECT_NE(result.standard_error.find("step "), std::string::npos) << result.standard_error;
  EXPECT_TRUE(Exists("run/latest/metadata.json"));
  EXPECT_EQ(Metrics("run").back()["type"], "run_end");
  EXPECT_EQ(Metrics("run").back()["exit_status"], 6);
}

TEST_F(TrainToolTest, AFailingDiskIsStatus4LeavesTheLastCheckpointAndTheRunGoesOn) {
  // A full disk stays full: "..." fails every later call as well.
  const ProcessResult result = Shell(R"(
    train --steps 20 --out whole 2> /dev/null || exit 1
    for fault in 'write .step-00000010 3 ENOSPC...' 'open /.step-00000010 4 ENOSPC...' \
                 'fsync /.model.safetensors 2 EIO' 'rename checkpoints/step-00000010 1 EIO'; do
      LD_PRELOAD=$PRELOAD SYSCALL_FAULT=$fault train --steps 20 --save-every 5 --out run 2> log
      echo $? $(ls -A run/checkpoints) $(readlink run/latest)
      grep -q 'error: run/checkpoints/.*step-00000010.*step 10 is not saved' log &&
        grep -q '; the last checkpoint is run/checkpoints/step-00000005)' log || cat log
      case $fault in *ENOSPC*) grep -q 'hint: free some space' log || cat log ;; esac
      tail -n 1 run/metrics.jsonl | grep -q '"type":"run_end".*"exit_status":4' || tail -n 1 run/metrics.jsonl
      train --resume --out run 2> /dev/null
      cmp run/latest/model.safetensors whole/latest/model.safetensors; rm -r run
    done)");
  const std::string expected = "4 step-00000005 checkpoints/step-00000005\n";
  EXPECT_EQ(result.standard_output, expected + expected + expected + expected) << result.standard_error;
}

TEST_F(TrainToolTest, AFileSizeLimitIsStatus4AndLeavesTheLastCheckpoint) {
  const ProcessResult result = Shell(R"(
    train --steps 20 --max-minutes 0.00001 --out run 2> /dev/null || exit 1
    (ulimit -f 64; train --resume --out run); echo $?
    ls -A run/checkpoints
    train --resume --out run 2> /dev/null && train --steps 20 --out whole 2> /dev/null)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "4\nstep-00000001\n") << result.standard_error;
  EXPECT_NE(result.standard_error.find("hint: raise the limit on the size of files (ulimit -f)"),
            std::string::npos)
      << result.standard_error;
  EXPECT_EQ(WeightsOf("run"), WeightsOf("whole"));
}

TEST_F(TrainToolTest, ACorruptNewestCheckpointIsPassedOverAloud) {
  const ProcessResult result = Shell(R"(
    train --steps 20 --save-every 5 --out whole 2> /dev/null || exit 1
    LD_PRELOAD=$PRELOAD SYSCALL_FAULT='rename checkpoints/step-00000020 1 KILL' \
      train --steps 20 --save-every 5 --out cut 2> /dev/null
    flip() {
      python3 -c 'import sys; file = open(sys.argv[1], "r+b"); file.seek(int(sys.argv[2]), int(sys.argv[3]))
byte = file.read(1)[0]; file.seek(-1, 1); file.write(bytes([byte ^ 4]))' run/latest/$1 $2 $3
    }
    for damage in 'flip model.safetensors -9 2' 'flip trainwright_state.safetensors -9 2' \
                  'flip trainwright_state.safetensors 20 0' 'truncate -s 100 run/latest/metadata.json' \
                  'truncate -s 0 run/latest/model.safetensors' 'rm run/latest/config.json'; do
      rm -rf run; cp -a cut run; $damage
      train --resume --out run 2> log; echo $?
      grep -q 'warning: .*step-00000015.*trying an older checkpoint' log &&
        grep -q 'continuing at step 10 of 20' log || cat log
      cmp run/latest/model.safetensors whole/latest/model.safetensors
    done)");
  EXPECT_EQ(result.standard_output, "0\n0\n0\n0\n0\n0\n") << result.standard_error;
}

// Every change is signed anew, so that hashes alone notice none. 3: refused; other: the run ends with other
// weights than the uninterrupted one.
TEST_F(TrainToolTest, EachPartOfTheStateThatIsFalseIsNoticed) {
  const std::pair<const char*, const char*> changes[] = {{"none", "same"},
                                                         {R"(/schema="trainwright.state/0")", "3"},
                                                         {"/accumulation_phase=1", "3"},
                                                         {"/accumulation_phase", "3"},
                                                         {"/plan/seed=1", "3"},
                                                         {R"(/order_fingerprint="")", "3"},
                                                         {"/cursor/sample=3", "other"},
                                                         {"/cursor/epoch=1", "other"},
                                                         {"/cursor", "3"},
                                                         {"/step=1", "3"},
                                                         {"/updates=1", "other"},
                                                         {"/loss_scaler/scale=1024", "other"},
                                                         {"tensor:exp_avg=0", "other"},
                                                         {"tensor:exp_avg", "3"},
                                                         {"tensor:exp_avg_sq=0.001", "other"},
                                                         {"weight:model.norm.weight=1", "other"},
                                                         {"weight:model.norm.weight", "3"},
                                                         {"layout=[]", "3"}};
  std::string script, expected;
  for (const auto& [change, outcome] : changes) {
    script += std::string("    check '") + change + "'\n";
    expected += std::string(change) + " " + outcome + "\n";
  }
  const ProcessResult result = Shell("FALSIFY='" + Fixture("train/falsify_checkpoint.py") + R"('
    train --steps 9 --mixed-precision fp16 --out whole 2> /dev/null || exit 1
    train --steps 9 --mixed-precision fp16 --max-minutes 0.00001 --out cut 2> /dev/null || exit 1
    train --resume --max-minutes 0.00001 --keep 1 --out cut 2> /dev/null
    check() {
      rm -rf run; cp -a cut run; python3 "$FALSIFY" run/latest "$1" || exit 2
      train --resume --out run 2> log; status=$?
      if [ $status = 0 ]; then
        status=same; cmp -s run/latest/model.safetensors whole/latest/model.safetensors || status=other
      fi
      echo "$1 $status"
    }
)" + script);
  EXPECT_EQ(result.standard_output, expected) << result.standard_error;
}

TEST_F(TrainToolTest, EachDifferenceOfTheMachineWarns) {
  const ProcessResult result = Shell("FALSIFY='" + Fixture("train/falsify_checkpoint.py") + R"('
    train --steps 3 --max-minutes 0.00001 --out cut 2> /dev/null || exit 1
    check() {
      rm -rf run; cp -a cut run; python3 "$FALSIFY" run/latest "$1" || exit 2
      train --resume --out run 2> log; echo $? "$1" $(grep -c '"type":"warning"' run/metrics.jsonl)
      grep -c "warning: .* instead of the run's $2: results differ by rounding" log
    }
    check none x
    check '/compute/device="cuda:0"' cuda:0; check /compute/threads=7 7
    check '/compute/cpu_capability="AVX2 Intel"' 'AVX2 Intel'
    check '/compute/torch_build="torch 1"' 'torch 1'; check '/compute/attention="math"' math
    check '/compute/choices/cpu_kernels="fp32=library,bf16=widened"' fp32=library,bf16=widened
    # A field added to the state is to be added here.
    grep -a -o '.compute.":{[^}]*}' cut/latest/trainwright_state.safetensors | tr , '\n' | wc -l)");
  EXPECT_EQ(result.standard_output,
            "0 none 0\n0\n"
            "0 /compute/device=\"cuda:0\" 1\n1\n"
            "0 /compute/threads=7 1\n1\n"
            "0 /compute/cpu_capability=\"AVX2 Intel\" 1\n1\n"
            "0 /compute/torch_build=\"torch 1\" 1\n1\n"
            "0 /compute/attention=\"math\" 1\n1\n"
            "0 /compute/choices/cpu_kernels=\"fp32=library,bf16=widened\" 1\n1\n"
            "8\n")
      << result.standard_error;
}

TEST_F(TrainToolTest, AnotherSplitOrThreadCountStaysWithinTheStatedTolerance) {
  // trainwright-checkpoint(5) states these for the first 50 steps after resuming.
  const std::map<std::string, double> tolerances = {{"no", 1e-3}, {"bf16", 3e-2}, {"fp16", 1e-1}};
  const ProcessResult result = Shell("FALSIFY='" + Fixture("train/falsify_checkpoint.py") + R"('
    unset TRAINWRIGHT_BATCH
    for precision in no bf16 fp16; do
      train="train --mixed-precision $precision --steps 60 --batch 4 --accum 2 --save-every 10"
      $train --out $precision.whole 2> /dev/null || exit 1
      LD_PRELOAD=$PRELOAD SYSCALL_FAULT='write /.step-00000010 1 TERM' $train --out cut 2> /dev/null
      cp -a cut $precision.threads; train --resume --threads 2 --out $precision.threads 2> log
      grep -c 'warning: threads 2' log
      cp -a cut $precision.wide; train --resume --batch 8 --out $precision.wide 2> log
      grep -c 'warning: micro-batches of 8' log
      cp -a cut $precision.narrow; train --resume --batch 1 --out $precision.narrow 2> log
      grep -c 'warning: micro-batches of 1' log
      mv cut $precision.wrong; python3 "$FALSIFY" $precision.wrong/latest /cursor/epoch=9
      train --resume --out $precision.wrong 2> log
    done)");
  ASSERT_EQ(result.standard_output, "1\n1\n1\n1\n1\n1\n1\n1\n1\n") << result.standard_error;
  const auto losses_nats = [&](const std::string& run) {
    std::map<int64_t, double> losses;
    for (const nlohmann::json& record : Metrics(run)) {
      if (record["type"] == "step") losses[record["step"]] = record["loss_nats"];
    }
    return losses;
  };
  for (const auto& [precision, tolerance] : tolerances) {
    const std::map<int64_t, double> whole = losses_nats(precision + ".whole");
    for (const char* change : {".threads", ".wide", ".narrow", ".wrong"}) {
      const std::map<int64_t, double> resumed = losses_nats(precision + change);
      ASSERT_EQ(resumed.size(), 60u) << precision << change;
      double largest = 0;
      for (const auto& [step, loss_nats] : whole) {
        largest = std::max(largest, std::abs(resumed.at(step) - loss_nats) / loss_nats);
      }
      std::cout << precision << change << ": largest relative difference of losses " << largest << "\n";
      if (change == std::string(".wrong")) {
        EXPECT_GT(largest, tolerances.at("no")) << "other samples are seen";
      } else {
        EXPECT_LE(largest, tolerance) << precision << change;
      }
    }
  }
}

TEST_F(TrainToolTest, MetricsFollowTheirSchema) {
  const ProcessResult trained = Shell(R"(
    train --steps 6 --mixed-precision fp16 --eval-data other --eval-every 3 --max-minutes 0.00001 --out run &&
    train --resume --out run --eval-data other --eval-every 3 --threads 2)");
  ASSERT_EQ(trained.exit_status, 0) << trained.standard_error;
  const ProcessResult checked = CheckMetrics("run/metrics.jsonl");
  EXPECT_EQ(checked.exit_status, 0) << checked.standard_error;
  EXPECT_EQ(checked.standard_output, "checkpoint 2\neval 3\nrun_begin 2\nrun_end 1\nstep 6\nwarning 3\n");

  // The checker sees what it must: each of these breaks one rule.
  for (const char* edit :
       {"s/\"loss_nats\":[0-9.]*/\"loss_nats\":\"low\"/", "s/\"lr\":[^,]*,//", "$d",
        "0,/\"type\":\"step\"/{/\"type\":\"step\"/d}", "s/trainwright.train.1/trainwright.train\\/2/",
        "s/\"skipped\":/\"spare\":1,\"skipped\":/", "/\"step\"/s/\"softmax\"/\"soft\"/"}) {
    Shell(std::string("sed '") + edit + "' run/metrics.jsonl > broken.jsonl");
    EXPECT_EQ(CheckMetrics("broken.jsonl").exit_status, 1) << edit;
  }
}

TEST_F(TrainToolTest, UtilisationIsOverTheGivenPeakAndElseNull) {
  const ProcessResult trained = Shell(R"(
    train --steps 2 --out without --summary without.json &&
    train --steps 2 --out with --peak-tflops 0.5 --summary with.json)");
  ASSERT_EQ(trained.exit_status, 0) << trained.standard_error;
  EXPECT_THAT(trained.standard_error, testing::HasSubstr(" % MFU"));
  for (const bool known : {false, true}) {
    const std::vector<nlohmann::json> records = Metrics(known ? "with" : "without");
    EXPECT_EQ(records[0].at("peak_tflops"), known ? nlohmann::json(0.5) : nlohmann::json());
    int steps = 0;
    for (const nlohmann::json& record : records) {
      if (record.at("type") != "step") continue;
      ++steps;
      const auto flops_per_s = record.at("model_flops_per_s").get<double>();
      EXPECT_GT(flops_per_s, 0);
      if (known) {
        EXPECT_DOUBLE_EQ(record.at("mfu").get<double>(), flops_per_s / 0.5e12);
      } else {
        EXPECT_TRUE(record.at("mfu").is_null());
      }
    }
    EXPECT_EQ(steps, 2);
  }
  EXPECT_EQ(Shell("train --steps 2 --out none --peak-tflops 0").exit_status, 2);
}

TEST_F(TrainToolTest, EvaluateAndGenerateTakeAnAttentionBackend) {
  const ProcessResult evaluated = Shell(R"(
    train -q --steps 2 --out run
    for backend in auto math; do evaluate -q --checkpoint run --data other --attn-backend $backend; done)");
  ASSERT_EQ(evaluated.exit_status, 0) << evaluated.standard_error;
  const size_t end = evaluated.standard_output.find('\n');
  const auto loss_nats = [](const std::string& line) {
    return nlohmann::json::parse(line).at("loss_nats").get<double>();
  };
  EXPECT_NEAR(loss_nats(evaluated.standard_output.substr(end)),
              loss_nats(evaluated.standard_output.substr(0, end)), 1e-5);
  for (const char* tool : {"evaluate --data other", "generate --prompt a"}) {
    const ProcessResult refused =
        Shell(std::string(tool) + " --checkpoint run --device cpu --attn-backend flash");
    EXPECT_EQ(refused.exit_status, 2) << tool;
    EXPECT_THAT(refused.standard_error, testing::HasSubstr("runs on a GPU only")) << tool;
  }
}

TEST_F(TrainToolTest, EventFilesHoldOneCurveAfterAKillAndATornRecord) {
  const ProcessResult result = KillTearAndResume();
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "3\n");
  const ProcessResult checked = CheckCurves("--plain");
  EXPECT_EQ(checked.exit_status, 0) << checked.standard_error;
}

TEST_F(TrainToolTest, TensorboardReadsOneCurveAfterAKillAndATornRecord) {
  if (CheckCurves("2> /dev/null").exit_status == 77) {
    GTEST_SKIP() << "no Python package tensorboard; PYTHON may name a Python that has it";
  }
  const ProcessResult result = KillTearAndResume();
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "3\n");
  const ProcessResult checked = CheckCurves("");
  EXPECT_EQ(checked.exit_status, 0) << checked.standard_error;
}

TEST_F(TrainToolTest, TheWatchdogStopsADivergingRunAndSavesIt) {
  const ProcessResult result = Shell(R"(
    set -- --steps 400 --schedule constant --warmup 0 --clip 0 --save-every 0 --seed 1
    train "$@" --lr 0.003 --watchdog stop --max-minutes 0.01 --out calm > /dev/null 2>&1; echo $?
    train "$@" --lr 3 --watchdog stop --watchdog-ratio 1.1 --out wild 2> log; echo $?
    grep -c 'warning: the loss diverges' log; ls wild/checkpoints | wc -l
    tail -n 1 wild/metrics.jsonl | grep -o '"exit_status":6,"reason":"watchdog: the loss diverges')");
  EXPECT_EQ(result.standard_output,
            "0\n6\n1\n1\n\"exit_status\":6,\"reason\":\"watchdog: the loss diverges\n")
      << result.standard_error << ReadFile(folder_.path("log"));
}

TEST_F(TrainToolTest, TheReportCanBeMadeAgainFromTheMetricsAlone) {
  const ProcessResult result = Shell(R"(
    train -q --steps 4 --save-every 2 --eval-data other --eval-every 2 --max-minutes 0.00001 --out run &&
    train -q --resume --out run --eval-data other --eval-every 2 &&
    mkdir copy && cp run/metrics.jsonl copy/ && train --report copy && cmp run/report.svg copy/report.svg &&
    printf '{"torn' >> copy/metrics.jsonl && train --report copy && cmp run/report.svg copy/report.svg
    ls copy; train --report nowhere; echo $?)");
  EXPECT_EQ(result.standard_output, "metrics.jsonl\nreport.html\nreport.svg\ntraining_metrics.json\n4\n")
      << result.standard_error;
  EXPECT_NE(ReadFile(folder_.path("run/report.svg")).find("resumed"), std::string::npos);
}

// A run that is killed goes on from a compressed state, and from a plain one, as if nothing had happened.
TEST_F(TrainToolTest, ACompressedStateEndsInTheSameRun) {
  const ProcessResult result = Shell(R"sh(
    for precision in no bf16 fp16; do
      train="train --mixed-precision $precision --steps 9 --save-every 3 --keep 0"
      $train --out $precision.whole 2> /dev/null || exit 1
      LD_PRELOAD=$PRELOAD SYSCALL_FAULT='write /.step-00000009 2 KILL' \
        $train --compress-state --out $precision.killed 2> /dev/null
      [ $? = 137 ] || echo "not killed"
      cp -a $precision.killed $precision.plain
      $train --out $precision.killed --resume --compress-state 2> log || cat log
      $train --out $precision.plain --resume --compress-state=false 2> log || cat log
      for run in killed plain; do
        cmp $precision.whole/latest/model.safetensors $precision.$run/latest/model.safetensors
      done
      cmp $precision.whole/latest/trainwright_state.safetensors $precision.plain/latest/trainwright_state.safetensors
      state=$precision.killed/latest/trainwright_state.safetensors
      ckpt-compress -q -t $state > /dev/null || echo "the state is not compressed"
      ckpt-compress -q $precision.whole/latest/trainwright_state.safetensors -o whole.small
      for moments in exp_avg exp_avg_sq; do
        ckpt-compress -q -d --tensor $moments --to raw $state -o one
        ckpt-compress -q -d --tensor $moments --to raw whole.small -o two
        cmp one two; rm one two
      done
      rm whole.small
    done
    for run in killed whole; do
      evaluate --checkpoint bf16.$run --data other 2> log > full || cat log
      sed "s/$run//g" full > $run.json
    done
    cmp killed.json whole.json)sh");
  EXPECT_EQ(result.standard_output, "") << result.standard_error;
}

// Who writes changes no byte; what depends on time is listed as volatile.
TEST_F(TrainToolTest, TheBackgroundWritesTheSameFiles) {
  const ProcessResult result = Shell("STABLE='" + Fixture("train/check_metadata.py") + "' SCHEMA='" +
                                     Fixture("../lib/checkpoint/checkpoint_metadata.schema.json") + R"sh('
    for form in '' --compress-state '--compress-state --compress-model' --save-model-only; do
      for async in on off; do
        train -q --steps 9 --save-every 3 --keep 0 --keep-best 1 --eval-data other --eval-tokens 300 \
          --async-save $async $form --out $async 2> log || cat log
        python3 "$STABLE" "$SCHEMA" $async/checkpoints/*/metadata.json
        for step in $async/checkpoints/*; do
          python3 "$STABLE" --stable $step/metadata.json > stable && mv stable $step/metadata.json
        done
        grep -c "\"background\":$([ $async = on ] && echo true || echo false)" $async/metrics.jsonl
      done
      diff -r on/checkpoints off/checkpoints && [ $(readlink on/best) = $(readlink off/best) ] || echo "$form differs"
      rm -r on off
    done)sh");
  EXPECT_EQ(result.standard_output, "3\n3\n3\n3\n3\n3\n3\n3\n") << result.standard_error;
}

TEST_F(TrainToolTest, MetadataOfAResumedRunAreThoseOfAnUninterruptedOne) {
  const ProcessResult result = Shell("STABLE='" + Fixture("train/check_metadata.py") + R"sh('
    train="train -q --steps 12 --save-every 4 --eval-data other --eval-tokens 300 --eval-every 4"
    $train --out whole 2> log || cat log
    LD_PRELOAD=$PRELOAD SYSCALL_FAULT='any /.step-00000008 5 KILL' $train --out cut 2> /dev/null
    [ -e cut/checkpoints/step-00000004 ] || echo "killed too early"
    $train --out cut --resume 2> log || cat log
    for run in whole cut; do python3 "$STABLE" --stable $run/latest/metadata.json > $run.json; done
    diff whole.json cut.json)sh");
  EXPECT_EQ(result.standard_output, "") << result.standard_error;
}

TEST_F(TrainToolTest, MetadataHaveTheTimesAndSettingsUnderTheNamesOfTheGuide) {
  const ProcessResult result = Shell("train -q --steps 4 --save-every 2 --out run");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  const nlohmann::json first = Json("run/checkpoints/step-00000002/metadata.json");
  EXPECT_EQ(first.at("timestamp"), first.at("saved_at"));
  EXPECT_EQ(first.at("additional_metadata").at("optimization_settings").at("cudnn_benchmark"), false);
  EXPECT_FALSE(first.at("validation_metrics").contains("training_time_seconds"));
  const nlohmann::json last = Json("run/latest/metadata.json");
  const nlohmann::json& performance = last.at("additional_metadata").at("training_summary").at("performance");
  for (const char* name : {"training_time_seconds", "steps_per_second"}) {
    EXPECT_GT(last.at("validation_metrics").at(name).get<double>(), 0) << name;
    EXPECT_EQ(last.at("validation_metrics").at(name), performance.at(name)) << name;
  }
}

TEST_F(TrainToolTest, ReadersFindTheNewestCheckpointWhateverLatestSays) {
  const ProcessResult result = Shell(R"sh(
    train -q --steps 6 --save-every 2 --out run 2> /dev/null || exit 1
    train -q --steps 2 --seed 9 --out foreign 2> /dev/null || exit 1
    evaluate -q --checkpoint run --data other > right
    check() {
      evaluate -q --checkpoint run --data other > answer 2> log || cat log
      sed -i 's#"checkpoint":"[^"]*"##' answer; sed 's#"checkpoint":"[^"]*"##' right | cmp - answer && echo "$1"
      train --resume --out run 2> log; grep -c 'the run is complete: 6 steps' log
    }
    ln -sfn "$PWD/foreign/checkpoints/step-00000002" run/latest; check outside
    ln -sfn ../foreign/latest run/latest; check beside
    ln -sfn checkpoints/step-00000099 run/latest; check dangling
    rm run/latest; check none)sh");
  EXPECT_EQ(result.standard_output, "outside\n1\nbeside\n1\ndangling\n1\nnone\n1\n") << result.standard_error;
}

TEST_F(TrainToolTest, AModelOnlyRunSaysThatNothingContinuesFromIt) {
  const ProcessResult result = Shell(R"(
    train --steps 4 --save-model-only --out run 2> log; echo $?; grep -c 'warning: --save-model-only' log
    ls run/latest | grep -c trainwright_state
    train --resume --out run 2> log; echo $?; grep -c 'hint: start another run from its weights' log
    evaluate -q --checkpoint run --data other > /dev/null; echo $?)");
  EXPECT_EQ(result.standard_output, "0\n1\n0\n2\n1\n0\n") << result.standard_error;
}

TEST_F(TrainToolTest, CopiesAreWholeAndTheirCheckpointsMayGo) {
  const ProcessResult result = Shell(R"sh(
    train="train -q --steps 12 --save-every 3 --keep 0"
    $train --out whole 2> /dev/null || exit 1
    $train --copy-to plain --delete-after-copy --out a 2> log; echo $? $(ls -A plain | wc -l) $(ls a/checkpoints)
    $train --copy-to small --copy-compress --out b 2> log; echo $? $(ls -A small | wc -l) $(ls b/checkpoints | wc -l)
    for step in 3 6 9 12; do
      name=step-$(printf %08d $step); ckpt-compress -q -d small/$name.twc -o restored
      for file in model.safetensors trainwright_state.safetensors config.json; do
        cmp plain/$name/$file whole/checkpoints/$name/$file; cmp restored/$file whole/checkpoints/$name/$file
      done
      rm -r restored
    done
    grep -c '"type":"copy"' a/metrics.jsonl
    # The command sees committed checkpoints only, whatever their number.
    $train --copy-command 'test -e "$TRAINWRIGHT_CHECKPOINT/metadata.json" &&
      basename "$TRAINWRIGHT_CHECKPOINT" >> names' --out c 2> log
    echo $? $(cat names)
    $train --copy-to d/copies --out d; echo $?)sh");
  EXPECT_EQ(result.standard_output,
            "0 4 step-00000012\n0 4 4\n4\n"
            "0 step-00000003 step-00000006 step-00000009 step-00000012\n2\n")
      << result.standard_error;
}

TEST_F(TrainToolTest, AFailingTargetNeverStopsTrainingAndIsStatus4AtTheEnd) {
  const ProcessResult result = Shell(R"sh(
    train="train --steps 12 --keep 0 --copy-retries 0"
    $train --out whole 2> /dev/null || exit 1
    check() {
      "$@" --out run 2> log; echo $? $(grep -c 'warning: no copy of step' log) $(grep -o '[0-9]* of the checkpoints' log)
      tail -n 1 run/metrics.jsonl | grep -o 'complete, but copies of checkpoints are missing'
      cmp run/latest/model.safetensors whole/latest/model.safetensors; rm -r run
    }
    echo file > occupied
    check $train --save-every 3 --copy-to occupied
    check $train --save-every 3 --copy-command 'exit 3; :'
    check $train --copy-command 'sleep 60; :' --copy-timeout 0.1s --copy-queue 1 --save-every 6 --delete-after-copy
    LD_PRELOAD=$PRELOAD SYSCALL_FAULT='write target/.step 1 ENOSPC...' \
      $train --save-every 3 --copy-to target --delete-after-copy --out full 2> log
    echo $? $(ls -A target) $(ls full/checkpoints | wc -l); grep -c 'No space left' log)sh");
  EXPECT_EQ(result.standard_output,
            "4 8 4 of the checkpoints\ncomplete, but copies of checkpoints are missing\n"
            "4 8 4 of the checkpoints\ncomplete, but copies of checkpoints are missing\n"
            "4 4 2 of the checkpoints\ncomplete, but copies of checkpoints are missing\n"
            "4 4\n8\n")
      << result.standard_error << ReadFile(folder_.path("log"));
}

TEST_F(TrainToolTest, ACopyThatWasKilledIsMadeByTheResumedRunAndASignalWaitsForCopies) {
  const ProcessResult result = Shell(R"sh(
    train="train -q --steps 12 --save-every 6 --copy-to target"
    LD_PRELOAD=$PRELOAD SYSCALL_FAULT='rename target/step-00000012 1 KILL' $train --out run 2> /dev/null
    echo $? $(ls -A target | grep -c 'tmp-[a-z2-7]*$')
    train -q --resume --copy-to target --out run 2> log || cat log
    ls -A target | tr '\n' ' '
    rm -rf run; train --steps 3000 --save-every 1000 --copy-command 'sleep 0.3; echo >> copied; :' --out run 2> log & pid=$!
    await "grep -q '\"step\":5,' run/metrics.jsonl"
    kill -TERM $pid; wait $pid; echo $? $(wc -l < copied))sh");
  EXPECT_EQ(result.standard_output, "137 1\nstep-00000006 step-00000012 143 1\n") << result.standard_error;
}

}  // namespace
}  // namespace trainwright::test
