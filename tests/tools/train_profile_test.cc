// `train --profile N` and the options of a GPU, as processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class TrainProfileTest : public TrainProcessTest {
 protected:
  TrainProfileTest()
      : TrainProcessTest("PRELOAD='" TRAINWRIGHT_SYSCALL_FAULTS
                         "' TRAINWRIGHT_MODEL=tiny.json TRAINWRIGHT_BATCH=2 TRAINWRIGHT_SEQ=64") {}
  void SetUp() override {
    WriteModel("tiny.json");
    WriteShards(600);
  }
  /// The record of a run; null where it has none.
  nlohmann::json Profile(const std::string& run) {
    nlohmann::json found;
    for (const nlohmann::json& record : Metrics(run)) {
      if (record["type"] == "profile") found = record;
    }
    return found;
  }
  std::vector<std::string> Warnings(const std::string& run) {
    std::vector<std::string> warnings;
    for (const nlohmann::json& record : Metrics(run)) {
      if (record["type"] == "warning") warnings.push_back(record["message"]);
    }
    return warnings;
  }
  /// The numbers of the steps in a trace; fails where it is not whole.
  std::vector<int64_t> StepsOfTrace(const std::string& run) {
    std::vector<int64_t> steps;
    const nlohmann::json trace = Json(run + "/profile/trace.json");
    for (const nlohmann::json& event : trace["traceEvents"]) {
      if (event["name"] == "step") steps.push_back(event["args"]["step"]);
    }
    return steps;
  }
};

TEST_F(TrainProfileTest, TellsWhereTheTimeWentInTraceRecordReportAndTable) {
  const ProcessResult run = Shell("train --profile 3 --steps 6 --save-every 4 --out run");
  ASSERT_EQ(run.exit_status, 0) << run.standard_error;
  EXPECT_EQ(StepsOfTrace("run"), (std::vector<int64_t>{3, 4, 5}));
  const nlohmann::json profile = Profile("run");
  EXPECT_EQ(profile["first_step"], 3);
  EXPECT_EQ(profile["last_step"], 5);
  EXPECT_EQ(profile["trace"], "profile/trace.json");
  EXPECT_TRUE(profile["device"].is_null());
  double shares = 0, times_s = 0;
  for (const nlohmann::json& part : profile["parts"]) {
    shares += part["share"].get<double>();
    times_s += part["time_s"].get<double>();
  }
  EXPECT_NEAR(shares, 1, 1e-9);
  EXPECT_NEAR(times_s, profile["wall_time_s"].get<double>(), 1e-9);
  for (const char* part : {"gemm", "attention", "norm", "activation", "position", "embedding", "head",
                           "optimizer", "clip", "input", "checkpoint"}) {
    EXPECT_GT(profile["parts"][part]["time_s"], 0) << part;
  }
  EXPECT_THAT(run.standard_error, HasSubstr("profile of steps 3 to 5; open run/profile/trace.json"));
  EXPECT_THAT(run.standard_error, testing::ContainsRegex("train: +matmul +gemm +[0-9]+ "));
  EXPECT_THAT(ReadFile(folder_.path("run/report.svg")), HasSubstr("time of steps 3 to 5: "));
  const ProcessResult checked = Shell("python3 '" + Fixture("train/check_metrics.py") + "' '" +
                                      Fixture("../lib/run/metrics.schema.json") + "' run/metrics.jsonl");
  EXPECT_EQ(checked.exit_status, 0) << checked.standard_error;
  EXPECT_THAT(checked.standard_output, HasSubstr("profile 1"));
}

TEST_F(TrainProfileTest, WeightsAreTheSameBits) {
  const ProcessResult run = Shell(R"(
    train -q --profile 3 --steps 6 --accum 2 --out with &&
    train -q --steps 6 --accum 2 --out without)");
  ASSERT_EQ(run.exit_status, 0) << run.standard_error;
  EXPECT_EQ(WeightsOf("with"), WeightsOf("without"));
  EXPECT_FALSE(Exists("without/profile"));
  EXPECT_TRUE(Profile("without").is_null());
}

TEST_F(TrainProfileTest, RefusesToTimeNoStep) {
  for (const char* steps : {"0", "-1", "some"}) {
    const ProcessResult run = Shell(std::string("train --steps 2 --out run --profile ") + steps);
    EXPECT_EQ(run.exit_status, 2) << steps;
    EXPECT_THAT(run.standard_error, HasSubstr("--profile")) << steps;
    EXPECT_FALSE(Exists("run"));
  }
}

TEST_F(TrainProfileTest, OfARunThatIsShorterTimesTheStepsThatThereAreAndSaysSo) {
  const ProcessResult run = Shell("train --profile 5 --steps 2 --out run");
  ASSERT_EQ(run.exit_status, 0) << run.standard_error;
  EXPECT_EQ(StepsOfTrace("run"), (std::vector<int64_t>{1, 2}));
  EXPECT_THAT(Warnings("run"), testing::Contains(HasSubstr("--profile 5 times 2 steps")));
}

TEST_F(TrainProfileTest, HoldsForTheProcessThatIsGivenItAndItsTraceReplacesAnOlderOne) {
  const ProcessResult run = Shell(R"(
    train -q --profile 1 --steps 4 --schedule constant --out run && cp run/profile/trace.json first.json &&
    train -q --resume --out run --steps 8 && cmp run/profile/trace.json first.json &&
    train -q --resume --out run --steps 12 --profile 2)");
  ASSERT_EQ(run.exit_status, 0) << run.standard_error;
  EXPECT_EQ(StepsOfTrace("run"), (std::vector<int64_t>{11, 12}));
  int64_t profiles = 0;
  for (const nlohmann::json& record : Metrics("run")) profiles += record["type"] == "profile" ? 1 : 0;
  EXPECT_EQ(profiles, 2) << "the second process had none";
  EXPECT_THAT(ReadFile(folder_.path("run/config.yaml")), Not(HasSubstr("profile")));
}

TEST_F(TrainProfileTest, OfSeveralRanksTheFirstIsTimedWithItsExchange) {
  const ProcessResult run = Shell(R"(
    train --nproc 2 --profile 2 --steps 5 --out run && train -q --nproc 2 --steps 5 --out plain)");
  ASSERT_EQ(run.exit_status, 0) << run.standard_error;
  EXPECT_EQ(StepsOfTrace("run"), (std::vector<int64_t>{3, 4}));
  EXPECT_GT(Profile("run")["parts"]["exchange"]["time_s"], 0);
  const nlohmann::json trace = Json("run/profile/trace.json");
  int64_t sums = 0;
  for (const nlohmann::json& event : trace["traceEvents"]) {
    sums += event["name"] == "finish_gradient_sums" ? 1 : 0;
  }
  EXPECT_EQ(sums, 2) << "once a step";
  EXPECT_EQ(NamesIn(folder_.path("run/profile")), std::set<std::string>{"trace.json"});
  EXPECT_EQ(WeightsOf("run"), WeightsOf("plain"));
}

TEST_F(TrainProfileTest, AnEvaluationThatIsDueAfterAStepIsOnePieceOfIt) {
  WriteShards(600, 100);
  const ProcessResult run =
      Shell("train -q --profile 3 --steps 6 --eval-data other --eval-every 4 --out run");
  ASSERT_EQ(run.exit_status, 0) << run.standard_error;
  EXPECT_GT(Profile("run")["parts"]["evaluation"]["time_s"], 0);
  const nlohmann::json trace = Json("run/profile/trace.json");
  int64_t evaluations = 0, heads = 0;
  for (const nlohmann::json& event : trace["traceEvents"]) {
    evaluations += event["name"] == "evaluate" ? 1 : 0;
    heads += event["name"] == "linear_cross_entropy" ? 1 : 0;
  }
  EXPECT_EQ(evaluations, 1);
  EXPECT_EQ(heads, 3) << "those of the steps, not of the evaluation";
}

TEST_F(TrainProfileTest, ASignalEndsTheTraceWithTheStepsThatWereTaken) {
  const ProcessResult run = Shell(R"(
    train --profile 100000 --steps 100000 --lr 1e-6 --out run 2> log & pid=$!
    until grep -q '"step":6,' run/metrics.jsonl 2> /dev/null; do sleep 0.02; done
    kill -INT $pid; wait $pid; echo $?)");
  EXPECT_EQ(run.standard_output, "130\n") << ReadFile(folder_.path("log"));
  const std::vector<int64_t> steps = StepsOfTrace("run");
  ASSERT_GE(steps.size(), 4u) << "from step 3 on";
  const nlohmann::json profile = Profile("run");
  EXPECT_EQ(profile["first_step"], steps.front());
  EXPECT_EQ(profile["last_step"], steps.back());
  EXPECT_EQ(static_cast<int64_t>(steps.size()), steps.back() - steps.front() + 1);
  EXPECT_EQ(Metrics("run").back()["reason"], "signal");
}

TEST_F(TrainProfileTest, AKillLeavesNoTraceAndTheNextProcessNoRemains) {
  const ProcessResult run = Shell(R"(
    LD_PRELOAD=$PRELOAD SYSCALL_FAULT='write /profile/ 1 KILL' train -q --profile 2 --steps 6 --out run
    echo $?; ls -A run/profile | grep -c 'trace.json$' | grep -v 1
    train -q --profile 2 --steps 6 --out run)");
  ASSERT_EQ(run.exit_status, 0) << run.standard_error;
  EXPECT_THAT(run.standard_output, HasSubstr("137\n"));
  EXPECT_EQ(StepsOfTrace("run"), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(NamesIn(folder_.path("run/profile")), std::set<std::string>{"trace.json"});
}

TEST_F(TrainProfileTest, AFullDiskTakesTheTraceAndNotTheRun) {
  const ProcessResult run = Shell(R"(
    LD_PRELOAD=$PRELOAD SYSCALL_FAULT='write /profile/ 1 ENOSPC' train --profile 2 --steps 6 --out run)");
  ASSERT_EQ(run.exit_status, 0) << run.standard_error;
  EXPECT_THAT(run.standard_error, HasSubstr("the profile has no trace: "));
  EXPECT_TRUE(NamesIn(folder_.path("run/profile")).empty());
  EXPECT_EQ(Profile("run")["trace"], "");
  EXPECT_GT(Profile("run")["wall_time_s"], 0);
  EXPECT_EQ(Metrics("run").back()["reason"], "complete");
}

TEST_F(TrainProfileTest, OptionsOfAGpuAreToldToHaveNoEffectOnACpuAndChangeNoBit) {
  const ProcessResult run = Shell(R"(
    train --device cpu --steps 3 --tf32 on --deterministic --alloc-conf expandable_segments:True \
          --empty-cache-every 2 --out with && train -q --device cpu --steps 3 --out without)");
  ASSERT_EQ(run.exit_status, 0) << run.standard_error;
  for (const char* option : {"--tf32 on", "--deterministic", "--alloc-conf", "--empty-cache-every"}) {
    EXPECT_THAT(run.standard_error, HasSubstr(std::string(option) + " has no effect on a CPU"));
  }
  EXPECT_EQ(Metrics("with").front()["tf32"], false);
  EXPECT_EQ(WeightsOf("with"), WeightsOf("without"));
  // A run remembers them.
  const std::string options = ReadFile(folder_.path("with/config.yaml"));
  for (const char* key : {"tf32", "deterministic", "alloc-conf", "empty-cache-every"}) {
    EXPECT_THAT(options, HasSubstr(key));
  }
}

TEST_F(TrainProfileTest, RefusesSettingsOfTheAllocatorThatAreNone) {
  const ProcessResult run = Shell("train --steps 2 --out run --alloc-conf max_split_size_mb=512");
  EXPECT_EQ(run.exit_status, 2);
  EXPECT_THAT(run.standard_error, HasSubstr("--alloc-conf: 'max_split_size_mb=512' is no KEY:VALUE"));
  EXPECT_FALSE(Exists("run"));
}

TEST_F(TrainProfileTest, OnACpuEveryStepHasARecordUnlessAskedOtherwise) {
  ASSERT_EQ(
      Shell("train -q --steps 12 --out run && train -q --steps 12 --log-every 5 --out some").exit_status, 0);
  const auto steps_of = [&](const std::string& run) {
    int64_t steps = 0;
    for (const nlohmann::json& record : Metrics(run)) steps += record["type"] == "step" ? 1 : 0;
    return steps;
  };
  EXPECT_EQ(steps_of("run"), 12);
  EXPECT_EQ(steps_of("some"), 3);
}

}  // namespace
}  // namespace trainwright::test
