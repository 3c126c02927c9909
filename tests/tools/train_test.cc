// The tool `train` as a process: kill -9 and resume, signals, refusals, pipes, metrics.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/support.h"

namespace trainwright::test {
namespace {

/// A model so small that a step takes milliseconds.
constexpr char kTinyConfig[] =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 258,
  "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
  "num_key_value_heads": 1, "head_dim": 16, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
  "rope_theta": 10000.0, "tie_word_embeddings": true, "hidden_act": "silu"})";

class TrainToolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteFile(folder_.path("tiny.json"), kTinyConfig);
    const ProcessResult made = Shell(R"(
      head -n 600 $DATA/tinyshakespeare.txt | pretokenize -q - | pack -q --chunk 256 -o shards/ &&
      tail -n 200 $DATA/tinyshakespeare.txt | pretokenize -q - | pack -q --chunk 256 -o other/)");
    ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  }
  /// Runs a script in an own folder. One thread: the tests may share their cores.
  ProcessResult Shell(const std::string& script) {
    return RunShell("set -u; export DATA='" + Fixture("../examples/data") +
                    "' TRAINWRIGHT_MODEL=tiny.json TRAINWRIGHT_THREADS=1 TRAINWRIGHT_BATCH=2; cd '" +
                    folder_.path() + "'\n" + R"(
      await() {
        for _ in $(seq 3000); do eval "$1" 2> /dev/null && return; sleep 0.02; done
        echo "waited in vain for: $1" >&2; exit 98
      }
    )" + script);
  }
  /// The "weights sha256" of a run's newest checkpoint, by another program.
  std::string WeightsOf(const std::string& run) {
    return Shell("sha256sum < " + run + "/latest/model.safetensors").standard_output;
  }
  std::vector<nlohmann::json> Metrics(const std::string& run) {
    std::vector<nlohmann::json> records;
    std::istringstream content(ReadFile(folder_.path(run + "/metrics.jsonl")));
    for (std::string line; std::getline(content, line);) records.push_back(nlohmann::json::parse(line));
    return records;
  }
  ProcessResult CheckMetrics(const std::string& path) {
    return Shell("python3 '" + Fixture("train/check_metrics.py") + "' '" +
                 Fixture("../lib/train/metrics.schema.json") + "' '" + path + "'");
  }
  bool Exists(const std::string& name) { return std::filesystem::exists(folder_.path(name)); }

  TemporaryFolder folder_;
};

class TrainKillTest : public TrainToolTest, public testing::WithParamInterface<const char*> {};

TEST_P(TrainKillTest, ResumeAfterKillNineEqualsTheUninterruptedRun) {
  const std::string precision = GetParam();
  // Saving every third step makes it likely that some kill falls into a save.
  const std::string train =
      "train --steps 240 --save-every 3 --keep 2 --eval-data other --eval-every 40 "
      "--mixed-precision " +
      precision;
  const ProcessResult whole = Shell(train + " --out whole");
  ASSERT_EQ(whole.exit_status, 0) << whole.standard_error;

  const ProcessResult killed = Shell("RANDOM=" + std::to_string(TestSeed()) + "; train=\"" + train + R"(" 
    status=1; kills=0; resumed=0
    while [ $status != 0 ]; do
      $train --out killed --resume 2> log & pid=$!
      if [ $kills -lt 6 ]; then
        # Longer at each attempt, so that a slow machine gets on.
        sleep 0.$((RANDOM % 900 + 100)); [ $kills -lt 3 ] || sleep $((kills - 2))
        kill -9 $pid 2> /dev/null && kills=$((kills + 1))
      fi
      wait $pid; status=$?
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
    echo "$kills kills, $resumed resumptions"; [ $resumed -ge 1 ])");
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
    for signal in INT TERM; do
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
            "TERM 143\n\"exit_status\":143,\"reason\":\"signal\"\n");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(WeightsOf("INT"), WeightsOf("whole"));
  EXPECT_EQ(WeightsOf("TERM"), WeightsOf("whole"));
}

TEST_F(TrainToolTest, ATimeLimitSavesAndTheRunGoesOn) {
  const ProcessResult result = Shell(R"(
    train --steps 50 --out whole && train --steps 50 --out timed --max-minutes 0.00001 &&
    readlink timed/latest && train --resume --out timed)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "checkpoints/step-00000001\n");
  EXPECT_EQ(WeightsOf("timed"), WeightsOf("whole"));
}

TEST_F(TrainToolTest, TwoProcessesDoNotShareARun) {
  const ProcessResult result = Shell(R"(
    train --steps 100000 --out run 2> /dev/null & pid=$!
    await '[ -s run/metrics.jsonl ]' 
    train --steps 2 --out run; echo $?
    kill -9 $pid; wait $pid 2> /dev/null; exit 0)");
  EXPECT_EQ(result.standard_output, "2\n") << result.standard_error;
  EXPECT_NE(result.standard_error.find("is in use by another process"), std::string::npos)
      << result.standard_error;
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

TEST_F(TrainToolTest, AFullDiskIsStatus4AndLeavesTheLastCheckpoint) {
  // A limit on the size of files, whose signal is ignored, fails the write as a full disk does.
  const ProcessResult result = Shell(R"(
    train --steps 20 --max-minutes 0.00001 --out run 2> /dev/null || exit 1
    (trap '' XFSZ; ulimit -f 64; train --resume --out run); echo $?
    ls run/checkpoints; ls -A run/checkpoints | wc -l
    train --resume --out run && train --steps 20 --out whole)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "4\nstep-00000001\n1\n") << result.standard_error;
  EXPECT_EQ(WeightsOf("run"), WeightsOf("whole"));
}

TEST_F(TrainToolTest, MetricsFollowTheirSchema) {
  const ProcessResult trained = Shell(R"(
    train --steps 6 --mixed-precision fp16 --eval-data other --eval-every 3 --max-minutes 0.00001 --out run &&
    train --resume --out run --eval-data other --eval-every 3 --threads 2)");
  ASSERT_EQ(trained.exit_status, 0) << trained.standard_error;
  const ProcessResult checked = CheckMetrics("run/metrics.jsonl");
  EXPECT_EQ(checked.exit_status, 0) << checked.standard_error;
  EXPECT_EQ(checked.standard_output, "checkpoint 2\neval 3\nrun_begin 2\nrun_end 1\nstep 6\nwarning 1\n");

  // The checker sees what it must: each of these breaks one rule.
  for (const char* edit :
       {"s/\"loss_nats\":[0-9.]*/\"loss_nats\":\"low\"/", "s/\"lr\":[^,]*,//", "$d", "3d",
        "s/trainwright.train.1/trainwright.train\\/2/", "s/\"skipped\":/\"spare\":1,\"skipped\":/"}) {
    Shell(std::string("sed '") + edit + "' run/metrics.jsonl > broken.jsonl");
    EXPECT_EQ(CheckMetrics("broken.jsonl").exit_status, 1) << edit;
  }
}

TEST_F(TrainToolTest, TensorboardReadsOneCurveAfterAKillAndATornRecord) {
  const std::string check = "\"${PYTHON:-python3}\" '" + Fixture("train/check_tensorboard.py") + "' run";
  if (Shell(check + " 2> /dev/null").exit_status == 77) {
    GTEST_SKIP() << "no Python package tensorboard; PYTHON may name a Python that has it";
  }
  const ProcessResult result = Shell(R"(
    set -- --out run --eval-data other --eval-every 4 --eval-tokens 500
    train --steps 3000 --save-every 5 "$@" 2> /dev/null &
    await '[ -e run/checkpoints/step-00000010 ] && grep -q "\"step\":13," run/metrics.jsonl'
    kill -9 $!; wait $!
    head -c 30 run/tb/events.out.tfevents.0000000001.trainwright > torn
    cat torn >> run/tb/events.out.tfevents.0000000001.trainwright
    train --resume "$@" --max-minutes 0.03 && train --resume "$@" --max-minutes 0.001
    ls run/tb | wc -l)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "3\n");
  const ProcessResult checked = Shell(check);
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
  EXPECT_EQ(result.standard_output, "metrics.jsonl\nreport.svg\n4\n") << result.standard_error;
  EXPECT_NE(ReadFile(folder_.path("run/report.svg")).find("resumed"), std::string::npos);
}

}  // namespace
}  // namespace trainwright::test
