#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/bench/claims.h"
#include "lib/bench/guide_models.h"
#include "lib/bench/system_claims.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using nlohmann::json;
using test::ProcessResult;
using test::RunShell;

constexpr char kQuick[] = " --budget 0 --min-rounds 4 ";

/// A command that reports a cost, so that no clock decides.
std::string Costing(double cost) {
  return "'echo \"{\\\"cost\\\": " + std::to_string(cost) + "}\"' ";
}

/// The names of the stages that a run has results of.
std::vector<std::string> StagesTold(const ProcessResult& run) {
  const json told = json::parse(run.standard_output);
  std::vector<std::string> names;
  for (const json& row : told.at("results")) names.push_back(row.at("name"));
  return names;
}

TEST(BenchToolTest, ALargerCostIsWorseAndExitStatus1) {
  const ProcessResult run = RunShell("bench --before " + Costing(1) + "--after " + Costing(5) +
                                     "--metric cost --by cost --output-check off --json" + kQuick);
  EXPECT_EQ(run.exit_status, 1) << run.standard_error;
  const json result = json::parse(run.standard_output);
  EXPECT_EQ(result.at("schema"), "trainwright.bench/1");
  EXPECT_EQ(result.at("results").at(0).at("verdict"), "worse");
  EXPECT_NEAR(result.at("results").at(0).at("comparisons").at(0).at("ratio_low").get<double>(), 5, 1e-9);
}

TEST(BenchToolTest, APercentSignMeansWhatItSays) {
  const std::string command = "bench --before " + Costing(1) + "--after " + Costing(5) +
                              "--metric cost --by cost --output-check off" + kQuick + " --max-regression ";
  EXPECT_EQ(RunShell(command + "2%").exit_status, 1);
  EXPECT_EQ(RunShell(command + "2000%").exit_status, 0);
  EXPECT_EQ(RunShell(command + "2%%").exit_status, 2);
}

TEST(BenchToolTest, WhatACommandLeavesInTheBackgroundEndsWithIt) {
  const test::TemporaryFolder folder;
  const ProcessResult run =
      RunShell("cd " + folder.path() +
               " && bench --before 'sleep 600 & echo $! >> left' --after true --max-regression 9999 --json" +
               kQuick + "> told || exit; for pid in $(cat left); do ! kill -0 $pid || exit 9; done");
  EXPECT_EQ(run.exit_status, 0) << run.standard_error;
}

TEST(BenchToolTest, WhatThePreparationStartsIsThereForTheRun) {
  const test::TemporaryFolder folder;
  const ProcessResult run =
      RunShell("cd " + folder.path() +
               " && bench --prepare 'sleep 30 & echo $! > server; echo $! >> all' --before 'kill -0 $(cat "
               "server)' --after 'kill -0 $(cat server)' --max-regression 9999" +
               kQuick + "; status=$?; kill $(cat all); exit $status");
  EXPECT_EQ(run.exit_status, 0) << run.standard_error;
}

TEST(BenchToolTest, WhatThePreparationStartsMayWriteToStandardError) {
  const test::TemporaryFolder folder;
  const std::string wait = "'until [ -e alive ]; do sleep 0.01; done' ";
  const ProcessResult run =
      RunShell("cd " + folder.path() +
               " && bench --prepare 'rm -f alive; (sleep 0.1; seq 1 20000 >&2; : > alive) &' --before " +
               wait + "--after " + wait + "--timeout 30 --max-regression 9999" + kQuick);
  EXPECT_EQ(run.exit_status, 0) << run.standard_error;
}

TEST(BenchToolTest, WhatThePreparationStartsEndsAfterItsRun) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("start.sh"),
                  "! kill -0 $(cat server) || exit 9\nsleep 600 &\necho $! > server\n");
  const ProcessResult run =
      RunShell("cd " + folder.path() +
               " && bench --prepare 'sh start.sh' --before true --after true --max-regression 9999" + kQuick +
               "&& ! kill -0 $(cat server)");
  EXPECT_EQ(run.exit_status, 0) << run.standard_error;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(BenchToolTest, WhatBenchReadOfEarlierRunsIsNoMemoryOfARun) {
  const test::TemporaryFolder folder;
  constexpr size_t kReported = 12'000'000;
  test::WriteFile(folder.path("large.json"), "{\"x\":1,\"y\":\"" + std::string(kReported, 'y') + "\"}\n");
  const ProcessResult run =
      RunShell("cd " + folder.path() +
               " && bench --before 'cat large.json' --after 'cat large.json' --metric x --json --warmup 0 "
               "--max-rounds 2 --budget 0");
  const json rounds = json::parse(run.standard_output).at("measurements").at(0).at("rounds");
  ASSERT_EQ(rounds.size(), 2u) << run.standard_error;
  for (const json& round : rounds) {
    for (const json& runs : round) {
      for (const json& sample : runs) {
        EXPECT_LT(sample.at("max_memory_bytes").get<double>(), kReported) << rounds;
      }
    }
  }
}
#endif

TEST(BenchToolTest, JsonHoldsEverySampleOfEveryRun) {
  const ProcessResult run = RunShell(
      "bench --before true --after true --min-rounds 4 --max-rounds 4 --json --max-regression 10000");
  EXPECT_EQ(run.exit_status, 0) << run.standard_error;
  const json measurement = json::parse(run.standard_output).at("measurements").at(0);
  EXPECT_EQ(measurement.at("variants"), json({"before", "after", "control"}));
  ASSERT_EQ(measurement.at("rounds").size(), 4u);
  for (const json& round : measurement.at("rounds")) {
    ASSERT_EQ(round.size(), 3u);
    for (const json& runs : round) {
      ASSERT_EQ(runs.size(), 2u);
      for (const json& sample : runs) {
        EXPECT_GT(sample.at("wall_s").get<double>(), 0);
        EXPECT_EQ(sample.at("exit_status"), 0);
      }
    }
  }
}

/// Every name of an object, of those inside it and of the first element of lists.
void CollectNames(const json& value, std::set<std::string>* names) {
  if (value.is_array() && !value.empty()) CollectNames(value.front(), names);
  if (!value.is_object()) return;
  for (const auto& [name, inner] : value.items()) {
    names->insert(name);
    CollectNames(inner, names);
  }
}

TEST(BenchToolTest, TheManualPageNamesEveryFieldOfTheJson) {
  const ProcessResult run =
      RunShell("bench --before true --after true --json --max-regression 9999" + std::string(kQuick));
  std::set<std::string> names;
  CollectNames(json::parse(run.standard_output), &names);
  EXPECT_GT(names.size(), 40u);
  const std::string page = test::ReadFile(test::Fixture("../man/trainwright-bench.5"));
  for (const std::string& name : names) EXPECT_NE(page.find(name), std::string::npos) << name;
}

TEST(BenchToolTest, TheCommandsOwnRateDecidesWhenAskedTo) {
  const ProcessResult run = RunShell(
      std::string(
          "bench --before 'echo \"{\\\"tokens_per_s\\\": 100}\"' --after 'echo \"{\\\"tokens_per_s\\\": "
          "150}\"' --metric tokens_per_s --by tokens_per_s --output-check off --json") +
      kQuick);
  EXPECT_EQ(run.exit_status, 0) << run.standard_error;
  const json wall = json::parse(run.standard_output).at("results").at(0).at("comparisons").at(0);
  EXPECT_EQ(wall.at("verdict"), "faster");
  EXPECT_NEAR(wall.at("ratio").get<double>(), 1.5, 1e-9);
}

TEST(BenchToolTest, OutputsThatDifferWarnOrFail) {
  const std::string command =
      std::string("bench --before 'echo 1' --after 'echo 2' --max-regression 9999") + kQuick;
  const ProcessResult warned = RunShell(command);
  EXPECT_EQ(warned.exit_status, 0) << warned.standard_error;
  EXPECT_NE(warned.standard_output.find("the outputs differ"), std::string::npos) << warned.standard_output;
  EXPECT_EQ(RunShell(command + "--output-check fail").exit_status, 1);
  const ProcessResult changing =
      RunShell("bench --before 'date +%N' --after 'date +%N' --max-regression 9999 --output-check fail" +
               std::string(kQuick));
  EXPECT_EQ(changing.exit_status, 0);
  EXPECT_NE(changing.standard_output.find("changes from run to run"), std::string::npos);
}

TEST(BenchToolTest, StagesAreComparedOneByOneAndTheHtmlReportShowsThem) {
  test::TemporaryFolder folder;
  test::WriteFile(folder.path("stages.yaml"),
                  "metrics: [cost]\nstages:\n  - name: steady\n    before: " + Costing(1) +
                      "\n    after: " + Costing(1) + "\n  - name: dear\n    before: " + Costing(1) +
                      "\n    after: " + Costing(2) + "\n");
  const ProcessResult run = RunShell(
      "cd " + folder.path() + " && bench --stages stages.yaml --by cost --report r.html --json" + kQuick);
  EXPECT_EQ(run.exit_status, 1) << run.standard_error;
  const json results = json::parse(run.standard_output).at("results");
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results.at(0).at("name"), "steady");
  EXPECT_EQ(results.at(0).at("verdict"), "same");
  EXPECT_EQ(results.at(1).at("verdict"), "worse");
  const std::string page = test::ReadFile(folder.path("r.html"));
  EXPECT_NE(page.find("dear: worse"), std::string::npos);
  EXPECT_NE(page.find("<svg"), std::string::npos);
}

TEST(BenchToolTest, AblationComparesEachLeverWithTheBase) {
  test::TemporaryFolder folder;
  test::WriteFile(folder.path("plan.yaml"),
                  "base: \"echo '{\\\"loss\\\": 3}' > {dir}/m; true {levers}\"\nmetric-file: \"{dir}/m\"\n"
                  "metrics: [loss]\nlevers:\n  - {name: more, add: 0.06}\n  - {name: most, add: 0.08}\n");
  const std::string command = "bench --stages " + folder.path("plan.yaml") + " --json" + kQuick;
  const json alone = json::parse(RunShell(command + "--ablate one-at-a-time").standard_output).at("results");
  ASSERT_EQ(alone.size(), 2u);
  EXPECT_EQ(alone.at(1).at("before"), "base");
  const json cumulative =
      json::parse(RunShell(command + "--ablate cumulative").standard_output).at("results");
  ASSERT_EQ(cumulative.size(), 3u);
  EXPECT_EQ(cumulative.at(1).at("before"), "+ more");
  EXPECT_EQ(cumulative.at(2).at("name"), "all levers");
  EXPECT_EQ(RunShell(command).exit_status, 2);  // levers without --ablate
}

TEST(BenchToolTest, RoundsGoOnUntilEachRowOfACumulativeAblationIsKnownClosely) {
  const test::TemporaryFolder folder;
  // Each lever alternates by 0.8 % around the base, and so by twice as much around the other.
  test::WriteFile(folder.path("run.sh"), R"sh(echo >> "runs.$1$2"
odd=$((($(wc -l < "runs.$1$2") + 1) / 2 % 2))
case $1$2.$odd in
  a.1 | ab.0) echo '{"cost": 1.008}' ;;
  a.0 | ab.1) echo '{"cost": 0.992}' ;;
  *) echo '{"cost": 1}' ;;
esac)sh");
  test::WriteFile(folder.path("plan.yaml"),
                  "base: sh run.sh {levers}\nmetrics: [cost]\n"
                  "levers:\n  - {name: first, add: a}\n  - {name: second, add: b}\n");
  const ProcessResult run = RunShell("cd " + folder.path() +
                                     " && bench --stages plan.yaml --ablate cumulative --by cost --warmup 0 "
                                     "--output-check off --min-rounds 4 --max-rounds 6 --width 2 --json");
  EXPECT_EQ(json::parse(run.standard_output).at("measurements").at(0).at("rounds").size(), 6u)
      << run.standard_error;
}

TEST(BenchToolTest, EachMetricIsCorrectedOverAllStages) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("run.sh"), R"sh(echo >> "runs.$1"
echo "{\"cost\": 1, \"price\": 1.$((10 + ($(wc -l < "runs.$1") - 1) / 2 % 2))}")sh");
  test::WriteFile(folder.path("base.sh"), R"sh(echo '{"cost": 1, "price": 1}')sh");
  test::WriteFile(folder.path("stages.yaml"),
                  "metrics: [cost, price]\nstages:\n"
                  "  - {name: one, before: sh base.sh, after: sh run.sh one}\n"
                  "  - {name: two, before: sh base.sh, after: sh run.sh two}\n");
  const ProcessResult run =
      RunShell("cd " + folder.path() +
               " && bench --stages stages.yaml --by cost --warmup 0 --output-check off --json" + kQuick);
  int corrected = 0;
  const json result = json::parse(run.standard_output);
  for (const json& row : result.at("results")) {
    for (const json& comparison : row.at("comparisons")) {
      if (comparison.at("metric") != "price") continue;
      const auto p_value = comparison.at("p_value").get<double>();
      EXPECT_GT(p_value, 0);
      EXPECT_NEAR(comparison.at("p_adjusted").get<double>(), 2 * p_value, 1e-12) << comparison;
      ++corrected;
    }
  }
  EXPECT_EQ(corrected, 2) << run.standard_error;
}

TEST(BenchToolTest, ASweepTellsTheLossOfEachOfItsValues) {
  test::TemporaryFolder folder;
  test::WriteFile(folder.path("plan.yaml"),
                  "base: \"lr=2; {levers} echo '{\\\"loss\\\": '$lr'}' > {dir}/m\"\n"
                  "metric-file: \"{dir}/m\"\nmetrics: [\"final:loss\"]\n"
                  "levers:\n  - {name: lr, add: \"lr={value};\", values: [3, 5]}\n");
  const std::string command =
      "bench --stages " + folder.path("plan.yaml") + " --json" + kQuick + "--ablate one-at-a-time";
  const test::ProcessResult run = RunShell(command);
  const json results = json::parse(run.standard_output).at("results");
  ASSERT_EQ(results.size(), 2u) << run.standard_error;
  EXPECT_EQ(results.at(0).at("name"), "lr 3");
  EXPECT_EQ(results.at(1).at("name"), "lr 5");
  std::vector<double> losses;
  for (const json& row : results) {
    for (const json& comparison : row.at("comparisons")) {
      if (comparison.at("metric") == "final:loss") losses.push_back(comparison.at("after").get<double>());
    }
  }
  EXPECT_EQ(losses, (std::vector<double>{3, 5}));
}

/// The JSON of `bench --claims` of a system that a signal ends when train is run with such flags. Its train
/// has no options, so that no claim is measured, and reports made-up steps at once.
json ClaimsUntil(const std::string& system, const std::string& flags) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("bin"));
  test::WriteFile(folder.path("bin/train"), R"sh(#!/bin/sh
out= before=
for word; do
  [ "$before" != --out ] || out=$word
  before=$word
done
case "$* " in
  "--help ") exit 0 ;;
  *"$STOP_AT "*) kill -TERM "$(cat bench.pid)"; sleep 9 ;;
  *" --summary "*) exit 1 ;;
esac
mkdir -p "$out"
for step in 1 2 3 4 5; do
  echo '{"tokens_per_s": 100, "step_time_s": 0.5, "effective_batch": 2}'
done > "$out/metrics.jsonl"
)sh");
  const ProcessResult run = RunShell(
      "cd " + folder.path() +
      " && chmod +x bin/train && cp \"$(command -v bench)\" bin/ && "
      "ln -s \"$(command -v pretokenize)\" \"$(command -v pack)\" bin/ && export STOP_AT='" +
      flags + "' && { bin/bench --claims " + system + " --budget 0 --json & echo $! > bench.pid; wait $!; }");
  EXPECT_EQ(run.exit_status, 143) << run.standard_error;
  return json::parse(run.standard_output);
}

TEST(BenchToolTest, TheSuiteOfClaimsHasTheRunsBeforeASignal) {
  const json result = ClaimsUntil("refocused", "--workers 2 --pin on --prefetch 2");
  EXPECT_EQ(result.at("stopped"), true);
  ASSERT_EQ(result.at("suite").size(), 1u) << result;
  EXPECT_EQ(result.at("suite").at(0).at("flags"), "--workers 0 --pin off --prefetch 2");
}

TEST(BenchToolTest, TheTableOfScansHasTheLengthsBeforeASignal) {
  const json result = ClaimsUntil("ten", "--seq 1024 --batch 32 --ten-scan sequential");
  EXPECT_EQ(result.at("stopped"), true);
  ASSERT_EQ(result.at("scans").size(), 3u) << result;
  for (const json& row : result.at("scans")) EXPECT_EQ(row.at("tokens"), 512);
}

#ifdef TRAINWRIGHT_SYSCALL_FAULTS  // train is built
/// Makes a folder of the tools in which train runs once for each set of flags and from then on gives what it
/// gave: how often a claim's runs are repeated is not what the test is about.
constexpr char kTrainOnceForEachSetOfFlags[] = R"sh(
mkdir bin runs
cp "$(command -v bench)" bin/  # which looks for the others beside itself
ln -s "$(command -v pretokenize)" "$(command -v pack)" bin/
export TRAIN=$(command -v train) RUNS=$PWD/runs
cat > bin/train <<'SCRIPT'
#!/bin/bash -e
flags=() out= is_out=
for argument; do
  if [[ $is_out ]]; then out=$argument; else flags+=("$argument"); fi
  is_out=
  [[ $argument != --out ]] || is_out=yes
done
[[ $out ]] || exec "$TRAIN" "$@"
kept=$RUNS/$(sha256sum <<< "${flags[*]}" | cut -c 1-64)
[[ -d $kept ]] || "$TRAIN" "${flags[@]/%--out/--out=$kept}"
cp -r "$kept" "$out"
SCRIPT
chmod +x bin/train
)sh";

TEST(BenchToolTest, ClaimsThatWereMeasuredBeforeASignalArePrinted) {
  const test::TemporaryFolder folder;
  const ProcessResult run = RunShell("cd " + folder.path() + kTrainOnceForEachSetOfFlags +
                                     "timeout -s TERM 2 bin/bench --claims grit --json || exit $?");
  EXPECT_EQ(run.exit_status, 124) << run.standard_error;  // timeout's own, when it had to signal
  const json result = json::parse(run.standard_output);
  EXPECT_EQ(result.at("stopped"), true);
  EXPECT_LT(result.at("claims").size(), 4u);
}

TEST(BenchToolTest, RunsOfTheGuidesSizesAreSuchAsTrainTakes) {
  const test::TemporaryFolder folder;
  const std::vector<uint16_t> ids = GuideIds(1 << 16);
  test::WriteFile(folder.path("ids.bin"),
                  std::string(reinterpret_cast<const char*>(ids.data()), sizeof(ids[0]) * ids.size()));
  for (const GuideModel& model : GuideModels())
    test::WriteFile(folder.path(model.name + ".json"), model.config);
  const ProcessResult packed =
      RunShell("cd " + folder.path() +
               " && pack -q --from nanogpt --vocab 50257 --eot 50256 --chunk 1024 -o ids/ ids.bin");
  ASSERT_EQ(packed.exit_status, 0) << packed.standard_error;
  std::set<std::string> runs;
  for (const char* system : {"refocused", "rft", "lora"}) {
    for (const Claim& claim : ClaimsOf(system)) {
      for (const char* flags : {claim.before, claim.after}) {
        if (!claim.needs_gpu && AbsentFlags(claim, RunShell("train --help").standard_output).empty()) {
          runs.insert(WithGuideModels(claim.guide, folder.path()) + " " + flags);
        }
      }
    }
  }
  for (const SuiteCase& suite_case : RefocusedClaims().suite) {
    runs.insert(WithGuideModels(suite_case.guide, folder.path()) + " " + suite_case.flags);
  }
  ASSERT_GE(runs.size(), 24u);
  for (const std::string& flags : runs) {
    const ProcessResult run =
        RunShell("cd " + folder.path() + " && train --data ids --steps 4 --print-config " + flags);
    EXPECT_EQ(run.exit_status, 0) << flags << ": " << run.standard_error;
  }
  const ProcessResult trained =
      RunShell("cd " + folder.path() + " && train -q --data ids --steps 1 --batch 1 --out run --model " +
               WithGuideModels("{neox-512} --seq 64", folder.path()));
  EXPECT_EQ(trained.exit_status, 0) << trained.standard_error;
}

TEST(BenchToolTest, ClaimsAreMeasuredOrSayWhichFeatureIsAbsent) {
  const test::TemporaryFolder folder;
  const ProcessResult run = RunShell("cd " + folder.path() + kTrainOnceForEachSetOfFlags +
                                     "bin/bench --claims grit --budget 0.1 --json");
  EXPECT_EQ(run.exit_status, 1) << run.standard_error;
  const json result = json::parse(run.standard_output), claims = result.at("claims");
  ASSERT_GE(claims.size(), 4u);
  int compared = 0;
  for (const json& claim : claims) {
    const bool absent = claim.at("note").get<std::string>().starts_with("feature absent: --");
    EXPECT_NE(absent, claim.at("comparison").is_object()) << claim;
    EXPECT_TRUE(!absent || claim.at("verdict") == "not met") << claim;
    EXPECT_NE(claim.at("hardware"), "");
    if (!claim.at("comparison").is_object()) continue;
    EXPECT_GT(claim.at("comparison").at("ratio").get<double>(), 0) << claim;
    ++compared;
  }
  EXPECT_GE(compared, 3);
  const json& variants = result.at("variants");
  EXPECT_EQ(variants.size(), 2u * static_cast<size_t>(compared));
  for (const json& row : variants) {
    for (const char* figure : {"samples_per_s", "max_memory_bytes", "epoch_time_s", "utilization"}) {
      EXPECT_GT(row.at(figure).get<double>(), 0) << row;
    }
  }
}

TEST(BenchToolTest, WhatContradictsAClaimIsCitedBesideIt) {
  const test::TemporaryFolder folder;
  const ProcessResult run = RunShell("cd " + folder.path() + kTrainOnceForEachSetOfFlags +
                                     "bin/bench --claims lora --claims-only 'compilation' --budget 0.1 "
                                     "--json > other; bin/bench --claims lora --claims-only 'pinned memory' "
                                     "--budget 0.1 --save saved.json");
  EXPECT_THAT(run.standard_output, testing::HasSubstr("on in the guide, off in its code"))
      << run.standard_error;
  EXPECT_EQ(json::parse(test::ReadFile(folder.path("saved.json"))).at("contradictions").size(), 1u);
  EXPECT_EQ(json::parse(test::ReadFile(folder.path("other"))).at("contradictions"), json::array());
}

TEST(BenchToolTest, OfTheClaimsOnlyThoseThatAreNamedAreMeasured) {
  const test::TemporaryFolder folder;
  const ProcessResult run =
      RunShell("cd " + folder.path() + kTrainOnceForEachSetOfFlags +
               "bin/bench --claims grit --claims-only memory --budget 0.1 --json --save saved.json");
  const json result = json::parse(run.standard_output);
  EXPECT_EQ(json::parse(test::ReadFile(folder.path("saved.json"))), result);
  ASSERT_EQ(result.at("claims").size(), 1u) << run.standard_error;
  EXPECT_EQ(result.at("claims")[0].at("metric"), "max_memory_bytes");
  EXPECT_EQ(result.at("variants").size(), 2u);
}
#endif

TEST(BenchToolTest, MistakesAreNamed) {
  EXPECT_EQ(RunShell("bench").exit_status, 2);
  EXPECT_EQ(RunShell("bench --before true").exit_status, 2);
  EXPECT_EQ(RunShell("bench --before true --after true --claims-only save").exit_status, 2);
  const ProcessResult no_such_claim = RunShell("bench --claims rft --claims-only 'no such text'");
  EXPECT_EQ(no_such_claim.exit_status, 2);
  EXPECT_NE(no_such_claim.standard_error.find("the claims are: fp16/bf16: 2-3x faster; "), std::string::npos)
      << no_such_claim.standard_error;
  EXPECT_EQ(RunShell("bench --before true --after true --stages x.yaml").exit_status, 2);
  EXPECT_EQ(RunShell("bench --before true --after true --report picture.png").exit_status, 2);
  EXPECT_EQ(RunShell("bench --stages /no/such.yaml").exit_status, 4);
  EXPECT_EQ(RunShell("bench --before false --after true").exit_status, 3);
  EXPECT_EQ(RunShell("bench --before true --after 'sleep 30' --timeout 0.3").exit_status, 3);
  EXPECT_EQ(RunShell("bench --before true --after true --by tokens_per_s" + std::string(kQuick)).exit_status,
            2);
}

TEST(BenchToolTest, AMetricThatNothingReportsIsRefusedBeforeAnythingRuns) {
  const test::TemporaryFolder folder;
  const std::string marks = "echo >> " + folder.path("ran");
  const auto result =
      RunShell("bench --before '" + marks + "' --after '" + marks + "' --by nope" + std::string(kQuick));
  EXPECT_EQ(result.exit_status, 2);
  EXPECT_NE(result.standard_error.find("'nope'"), std::string::npos) << result.standard_error;
  EXPECT_FALSE(std::filesystem::exists(folder.path("ran")));
}

TEST(BenchToolTest, TextThatIsNotUtf8IsReplacedInJson) {
  const test::TemporaryFolder folder;
  const ProcessResult run = RunShell("cd " + folder.path() +
                                     " && bench --before $'echo a\\xffb' --after $'echo a\\xffb' --json "
                                     "--save saved.json --max-regression 9999" +
                                     kQuick);
  EXPECT_EQ(run.exit_status, 0) << run.standard_error;
  const json printed = json::parse(run.standard_output);
  EXPECT_EQ(printed.at("measurements").at(0).at("commands").at(0),
            "echo a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(printed, json::parse(test::ReadFile(folder.path("saved.json"))));
}

TEST(BenchToolTest, AnOutputThatCannotBeWrittenIsRefusedBeforeAnythingRuns) {
  const test::TemporaryFolder folder;
  const std::string start = "cd " + folder.path() + " && ";
  const std::string command = "bench --before 'echo >> ran' --after true" + std::string(kQuick);
  EXPECT_EQ(RunShell(start + command + "--save /no/such/x.json").exit_status, 4);
  EXPECT_EQ(RunShell(start + command + "--report nosuchdir/x.svg").exit_status, 4);
  EXPECT_EQ(RunShell(start + "bench --claims grit --save /no/such/x.json").exit_status, 4);
  test::WriteFile(folder.path("two.yaml"),
                  "stages:\n  - {name: a, before: echo >> ran, after: \"true\"}\n"
                  "  - {name: b, before: echo >> ran, after: \"true\"}\n");
  EXPECT_EQ(RunShell(start + "bench --stages two.yaml --report x.svg" + kQuick).exit_status, 2);
  EXPECT_FALSE(std::filesystem::exists(folder.path("ran")));
}

TEST(BenchToolTest, WhatOneOutputDoesNotTakeTheOthersStillGet) {
  const test::TemporaryFolder folder;
  const std::string command = "cd " + folder.path() +
                              " && bench --before true --after true --max-regression 9999" +
                              std::string(kQuick);
  EXPECT_EQ(RunShell(command + "--save kept.json > /dev/full").exit_status, 4);
  EXPECT_EQ(json::parse(test::ReadFile(folder.path("kept.json"))).at("schema"), "trainwright.bench/1");
  const ProcessResult printed = RunShell(command + "--save /dev/full");
  EXPECT_EQ(printed.exit_status, 4);
  EXPECT_NE(printed.standard_output.find("wall_s"), std::string::npos) << printed.standard_output;
}

TEST(BenchToolTest, OptionsThatWouldHaveNoEffectAreRefused) {
  for (const char* with_claims : {"--max-regression 2", "--report x.svg", "--metric-file -", "--warmup 3",
                                  "--by cpu_s", "--output-check fail", "--before true"}) {
    const ProcessResult run = RunShell(std::string("bench --claims grit ") + with_claims);
    EXPECT_EQ(run.exit_status, 2) << with_claims;
    EXPECT_NE(run.standard_error.find("has no meaning with --claims"), std::string::npos)
        << run.standard_error;
  }
  for (const char* alone :
       {"--ablate cumulative", "--metric-file x", "--metric-skip 3", "--min-rounds 50 --max-rounds 3"}) {
    EXPECT_EQ(RunShell(std::string("bench --before true --after true ") + alone).exit_status, 2) << alone;
  }
}

TEST(BenchToolTest, RoundsGoOnUntilTheIntervalIsNarrowToEitherSide) {
  const test::TemporaryFolder folder;
  // After three rounds of 1 and two of 1.05 the median is that of no change, and the interval ends at 1.05.
  test::WriteFile(folder.path("run.sh"), R"sh(echo >> runs
if [ $(wc -l < runs) -le 6 ]; then echo '{"cost": 1}'; else echo '{"cost": 1.05}'; fi)sh");
  const ProcessResult run = RunShell("cd " + folder.path() + " && bench --before " + Costing(1) +
                                     "--after 'sh run.sh' --metric cost --by cost --output-check off "
                                     "--warmup 0 --min-rounds 5 --max-rounds 6 --width 4 --json");
  EXPECT_EQ(json::parse(run.standard_output).at("measurements").at(0).at("rounds").size(), 6u)
      << run.standard_error;
}

TEST(BenchToolTest, OneBoundOfTheRoundsMovesTheDefaultOfTheOther) {
  const auto rounds = [](const std::string& bounds) {
    const ProcessResult run = RunShell("bench --before true --after true --json --budget 0 " + bounds);
    return json::parse(run.standard_output).at("measurements").at(0).at("rounds").size();
  };
  EXPECT_EQ(rounds("--max-rounds 3"), 3u);
  EXPECT_EQ(rounds("--min-rounds 201"), 201u);
}

TEST(BenchToolTest, OfBoundsOfTheRoundsThatDoNotFitTheHigherRankingSourceWins) {
  const test::TemporaryFolder folder;
  const std::string start = "cd " + folder.path() + " && ", command = "bench --before true --after true ";
  test::WriteFile(folder.path("least.yaml"), "min-rounds: 50\n");
  test::WriteFile(folder.path("both.yaml"), "min-rounds: 50\nmax-rounds: 3\n");
  struct Case {
    const char *environment, *flags;
    int least, most;
  };
  for (const Case& given : {Case{"", "--min-rounds 300", 300, 300}, Case{"", "--max-rounds 3", 3, 3},
                            Case{"", "--config least.yaml --max-rounds 3", 3, 3},
                            Case{"", "--config both.yaml --min-rounds 7", 7, 7},
                            Case{"TRAINWRIGHT_MAX_ROUNDS=4 ", "--config least.yaml", 4, 4},
                            Case{"TRAINWRIGHT_MAX_ROUNDS=4 ", "--min-rounds 9", 9, 9},
                            Case{"", "--min-rounds 300 --max-rounds 200", 300, 300}}) {  // 200 is the default
    const ProcessResult printed =
        RunShell(start + given.environment + command + given.flags + " --print-config | tee c.yaml");
    const std::string expected =
        "min-rounds: " + std::to_string(given.least) + "\nmax-rounds: " + std::to_string(given.most) + "\n";
    EXPECT_NE(printed.standard_output.find(expected), std::string::npos)
        << given.flags << printed.standard_output;
    const ProcessResult reloaded = RunShell(start + "bench --config c.yaml --print-config");
    EXPECT_EQ(reloaded.standard_output, printed.standard_output) << reloaded.standard_error;
  }
  const ProcessResult run = RunShell(start + command + "--config least.yaml --max-rounds 3 --json");
  EXPECT_EQ(json::parse(run.standard_output).at("measurements").at(0).at("rounds").size(), 3u);
  EXPECT_NE(run.standard_error.find("--max-rounds 3 overrides it"), std::string::npos) << run.standard_error;
  const ProcessResult of_file = RunShell(start + command + "--config both.yaml");
  EXPECT_EQ(of_file.exit_status, 2);
  EXPECT_NE(of_file.standard_error.find("both.yaml line 1"), std::string::npos) << of_file.standard_error;
  const ProcessResult of_variables =
      RunShell("TRAINWRIGHT_MIN_ROUNDS=50 TRAINWRIGHT_MAX_ROUNDS=3 " + command);
  EXPECT_EQ(of_variables.exit_status, 2);
  EXPECT_NE(
      of_variables.standard_error.find("TRAINWRIGHT_MIN_ROUNDS: 50 is more than TRAINWRIGHT_MAX_ROUNDS 3"),
      std::string::npos)
      << of_variables.standard_error;
}

TEST(BenchToolTest, APrintedConfigurationOfClaimsIsReadBack) {
  const test::TemporaryFolder folder;
  const std::string start = "cd " + folder.path() + " && ";
  RunShell(start + "bench --claims rft --claims-only 'no such text' --print-config > c.yaml");
  const ProcessResult reloaded = RunShell(start + "bench --config c.yaml");
  EXPECT_NE(reloaded.standard_error.find("the claims are: "), std::string::npos) << reloaded.standard_error;
  // Of its values only those that are no defaults are refused.
  const ProcessResult refused = RunShell(start + "bench --config c.yaml --warmup 3");
  EXPECT_EQ(refused.exit_status, 2);
  EXPECT_NE(refused.standard_error.find("--warmup: has no meaning with --claims"), std::string::npos)
      << refused.standard_error;
}

TEST(BenchToolTest, VariablesThatHaveNoEffectAreLeftAlone) {
  const std::string compare = "bench --before true --after true --max-regression 9999" + std::string(kQuick);
  for (const char* variable : {"METRIC_FILE=x", "METRIC_SKIP=3", "ABLATE=cumulative", "CLAIMS_ONLY=save",
                               "CLAIMS_SIZE=guide", "STAGES=/no/such.yaml", "CLAIMS=rft"}) {
    const ProcessResult run = RunShell("TRAINWRIGHT_" + (variable + (" " + compare)));
    EXPECT_EQ(run.exit_status, 0) << variable << ": " << run.standard_error;
  }
  for (const char* variable : {"METRIC=cost", "WARMUP=3", "BEFORE=true", "STAGES=/no/such.yaml"}) {
    const ProcessResult run =
        RunShell("TRAINWRIGHT_" + std::string(variable) + " bench --claims rft --claims-only 'no such text'");
    EXPECT_NE(run.standard_error.find("the claims are: "), std::string::npos)
        << variable << ": " << run.standard_error;
  }
  // Two that say what to compare are not.
  EXPECT_EQ(RunShell("TRAINWRIGHT_CLAIMS=rft TRAINWRIGHT_BEFORE=true bench --claims-only 'no'").exit_status,
            2);
}

TEST(BenchToolTest, StandardOutputIsNoFileToSaveTo) {
  const test::TemporaryFolder folder;
  const std::string start = "cd " + folder.path() + " && ln -s /dev/stdout x.svg && ";
  for (const char* flags : {"--before 'echo >> ran' --after true --save -",
                            "--before 'echo >> ran' --after true --save /dev/stdout",
                            "--before 'echo >> ran' --after true --report x.svg", "--claims grit --save -"}) {
    const ProcessResult run = RunShell(start + "bench " + flags);
    EXPECT_EQ(run.exit_status, 2) << flags;
    EXPECT_EQ(run.standard_output, "") << flags;
    std::filesystem::remove(folder.path("x.svg"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path("ran")));
  EXPECT_FALSE(std::filesystem::exists(folder.path("-")));
}

TEST(BenchToolTest, WhatASignalLeftIsSavedThroughPipesAndDescriptorsToo) {
  const test::TemporaryFolder folder;
  const ProcessResult run = RunShell(
      "cd " + folder.path() +
      " && echo 'echo x >> runs; [ $(wc -l < runs) -lt 18 ] || { kill -TERM $PPID; sleep 9; }' > run.sh && "
      "mkfifo r.html && { cat r.html > report & } && bench --before 'sh run.sh' --after true --no-shell "
      "--warmup 0 --json --save /dev/fd/3 --report r.html --output-check off --budget 60 --min-rounds 9 "
      "3> saved.json; status=$?; wait; exit $status");
  EXPECT_EQ(run.exit_status, 143) << run.standard_error;
  EXPECT_EQ(json::parse(run.standard_output), json::parse(test::ReadFile(folder.path("saved.json"))));
  EXPECT_NE(test::ReadFile(folder.path("report")).find("a signal stopped it"), std::string::npos);
}

TEST(BenchToolTest, OutputsAreComparedWithoutAWarmUpToo) {
  const std::string command =
      "bench --before 'echo 1' --after 'echo 2' --warmup 0 --max-regression 9999" + std::string(kQuick);
  EXPECT_EQ(RunShell(command + "--output-check fail").exit_status, 1);
  EXPECT_NE(RunShell(command).standard_output.find("the outputs differ"), std::string::npos);
}

TEST(BenchToolTest, WhatASignalLeftIsToldAndSaved) {
  for (const auto& [signal, status] : {std::pair("TERM", 143), std::pair("INT", 130)}) {
    const test::TemporaryFolder folder;
    // The command ends bench itself, in the last of the rounds that are measured whole.
    const ProcessResult run = RunShell(
        "cd " + folder.path() + " && echo 'echo x >> runs; [ $(wc -l < runs) -lt 18 ] || { kill -" + signal +
        " $PPID; sleep 9; }' > run.sh && bench --before 'sh run.sh' --after true --no-shell "
        "--warmup 0 --json --save saved.json --report r.html --output-check off --budget 60 "
        "--min-rounds 9");
    EXPECT_EQ(run.exit_status, status) << run.standard_error;
    const json printed = json::parse(run.standard_output);
    EXPECT_EQ(printed.at("stopped"), true);
    EXPECT_EQ(printed.at("exit_status"), status);
    EXPECT_EQ(printed.at("measurements").at(0).at("rounds").size(), 4u);  // of four runs of run.sh each
    EXPECT_EQ(printed.at("results").at(0).at("verdict"), "undecided");    // of fewer rounds than the least
    EXPECT_EQ(printed, json::parse(test::ReadFile(folder.path("saved.json"))));
    EXPECT_NE(test::ReadFile(folder.path("r.html")).find("a signal stopped it"), std::string::npos);
  }
}

TEST(BenchToolTest, ACommandThatFailsLeavesTheRoundsBeforeIt) {
  const test::TemporaryFolder folder;
  // A round has four runs of run.sh: the fifteenth is in the fourth.
  const ProcessResult run =
      RunShell("cd " + folder.path() +
               " && echo 'echo x >> runs; [ $(wc -l < runs) -lt 15 ] || exit 5' > run.sh && "
               "bench --before 'sh run.sh' --after true --no-shell --warmup 0 --json --save saved.json "
               "--report r.html --output-check off --budget 60 --min-rounds 9");
  EXPECT_EQ(run.exit_status, 3) << run.standard_error;
  EXPECT_THAT(run.standard_error, testing::ContainsRegex("'(before|control)': it ended with exit status 5 "
                                                         "\\(round 4\\)"));
  const json printed = json::parse(run.standard_output);
  EXPECT_EQ(printed.at("stopped"), true);
  EXPECT_EQ(printed.at("exit_status"), 3);
  EXPECT_THAT(printed.at("failure").get<std::string>(), testing::HasSubstr("exit status 5 (round 4)"));
  EXPECT_EQ(printed.at("measurements").at(0).at("rounds").size(), 3u);  // of four runs of run.sh each
  EXPECT_EQ(printed.at("results").at(0).at("verdict"), "undecided");
  EXPECT_EQ(printed, json::parse(test::ReadFile(folder.path("saved.json"))));
  EXPECT_NE(test::ReadFile(folder.path("r.html")).find("a command that failed stopped it"),
            std::string::npos);
}

TEST(BenchToolTest, ACommandThatFailsBeforeTheFirstRoundEndsLeavesWhatWasSavedBefore) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("saved.json"), "old");
  const ProcessResult run =
      RunShell("cd " + folder.path() + " && bench --before 'exit 5' --after true --save saved.json");
  EXPECT_EQ(run.exit_status, 3) << run.standard_error;
  EXPECT_EQ(run.standard_output, "");
  EXPECT_EQ(test::ReadFile(folder.path("saved.json")), "old");
}

TEST(BenchToolTest, ADecidingNumberThatBecomesZeroLeavesTheRoundsBeforeIt) {
  const test::TemporaryFolder folder;
  // A round has six runs of run.sh: the fifteenth is in the third.
  const ProcessResult run = RunShell(
      "cd " + folder.path() +
      " && echo 'echo x >> runs; echo \"{\\\"x\\\": $(($(wc -l < runs) < 15))}\"' > run.sh && "
      "bench --before 'sh run.sh' --after 'sh run.sh' --metric x --by x --no-shell --warmup 0 --json "
      "--save saved.json --output-check off --budget 60 --min-rounds 9");
  EXPECT_EQ(run.exit_status, 3) << run.standard_error;
  EXPECT_THAT(run.standard_error, testing::ContainsRegex("reports a 'x' that is no positive number"));
  const json saved = json::parse(test::ReadFile(folder.path("saved.json")));
  EXPECT_EQ(saved.at("measurements").at(0).at("rounds").size(), 2u);
  EXPECT_EQ(json::parse(run.standard_output), saved);
}

TEST(BenchToolTest, ANumberThatIsZeroInARunToWarmUpMayDecide) {
  const test::TemporaryFolder folder;
  // Three runs of run.sh warm up.
  const ProcessResult run =
      RunShell("cd " + folder.path() +
               " && echo 'echo x >> runs; echo \"{\\\"x\\\": $(($(wc -l < runs) > 3))}\"' > run.sh && "
               "bench --before 'sh run.sh' --after 'sh run.sh' --metric x --by x --no-shell --warmup 1 "
               "--output-check off" +
               std::string(kQuick));
  EXPECT_EQ(run.exit_status, 0) << run.standard_error;
}

TEST(BenchToolTest, StagesThatWereMeasuredBeforeADecidingNumberOfZeroAreTold) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("plan.yaml"),
                  "metrics: [x]\nstages:\n"
                  "  - {name: whole, before: 'echo {\"x\":5}', after: 'echo {\"x\":4}'}\n"
                  "  - {name: zero, before: 'echo {\"x\":0}', after: 'echo {\"x\":4}'}\n");
  const ProcessResult run =
      RunShell("cd " + folder.path() + " && bench --stages plan.yaml --no-shell --by x " +
               "--output-check off --json" + std::string(kQuick));
  EXPECT_EQ(run.exit_status, 3) << run.standard_error;
  EXPECT_THAT(StagesTold(run), testing::ElementsAre("whole"));
}

TEST(BenchToolTest, LeversDoNotFailByOutputsThatChangeFromRunToRun) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("plan.yaml"),
                  "base: \"date +%N; true {levers}\"\n"
                  "levers:\n  - {name: a, add: --a}\n  - {name: b, add: --b}\n");
  const ProcessResult run =
      RunShell("bench --stages " + folder.path("plan.yaml") +
               " --ablate cumulative --output-check fail --max-regression 9999 --json" + std::string(kQuick));
  EXPECT_EQ(run.exit_status, 0) << run.standard_error;
  const json told = json::parse(run.standard_output);
  for (const json& row : told.at("results")) {
    EXPECT_THAT(row.at("warnings").dump(), testing::HasSubstr("the output of 'base' changes")) << row;
  }
}

TEST(BenchToolTest, StagesThatWereMeasuredBeforeASignalAreTold) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("plan.yaml"),
                  "stages:\n  - {name: whole, before: \"true\", after: \"true\"}\n"
                  "  - {name: cut, before: \"kill -TERM $PPID; sleep 9\", after: \"true\"}\n");
  const ProcessResult run =
      RunShell("cd " + folder.path() + " && bench --stages plan.yaml --json" + std::string(kQuick));
  EXPECT_EQ(run.exit_status, 143) << run.standard_error;
  EXPECT_THAT(StagesTold(run), testing::ElementsAre("whole"));
}

TEST(BenchToolTest, ASignalBeforeTheFirstRoundLeavesWhatWasSavedBefore) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("saved.json"), "old");
  const ProcessResult run =
      RunShell("cd " + folder.path() +
               " && bench --before 'kill -TERM $PPID; sleep 9' --after true --save saved.json");
  EXPECT_EQ(run.exit_status, 143) << run.standard_error;
  EXPECT_EQ(test::ReadFile(folder.path("saved.json")), "old");
}

TEST(BenchToolTest, FlagsTakeThePlaceOfSingleFieldsOfTheStages) {
  const test::TemporaryFolder folder;
  test::WriteFile(folder.path("run.sh"), R"sh(printf '{"cost":1}\n{"cost":4}\n' > "$1/m"
printf '{"price":7}\n' > "$1/n")sh");
  const std::string stage = "stages:\n  - {name: a, before: 'sh run.sh {dir}', after: 'sh run.sh {dir}'}\n";
  const auto metrics = [&](const std::string& fields, const std::string& flags) {
    test::WriteFile(folder.path("plan.yaml"), fields + stage);
    const ProcessResult run =
        RunShell("cd " + folder.path() + " && bench --stages plan.yaml --json" + kQuick + flags);
    std::map<std::string, double> before;
    if (run.exit_status == 2) before["refused"] = 1;
    if (run.standard_output.empty()) return before;
    const json result = json::parse(run.standard_output);
    for (const json& comparison : result.at("results").at(0).at("comparisons")) {
      before[comparison.at("metric")] = comparison.at("before");
    }
    return before;
  };
  const std::string file = "metric-file: \"{dir}/m\"\n";
  EXPECT_EQ(metrics(file, "--metric cost")["cost"], 2.5);  // the field without metrics counts
  EXPECT_EQ(metrics(file + "metrics: [cost]\n", "--metric-skip 1")["cost"], 4);
  auto replaced = metrics(file + "metrics: [cost]\n", "--metric price --metric-file {dir}/n");
  EXPECT_EQ(replaced["price"], 7);
  EXPECT_FALSE(replaced.contains("cost"));
  EXPECT_TRUE(metrics(file, "").contains("refused"));  // of no metric
}

TEST(BenchToolTest, ALastValueThatIsNotFiniteIsToldAndCannotDecide) {
  const std::string command =
      "bench --before 'echo \"{\\\"loss\\\": 1}\"' "
      "--after 'echo \"{\\\"loss\\\": 1}\"; echo \"{\\\"loss\\\": NaN}\"' --metric final:loss "
      "--output-check off --max-regression 9999" +
      std::string(kQuick);
  const ProcessResult run = RunShell(command);
  EXPECT_EQ(run.exit_status, 0) << run.standard_error;
  EXPECT_NE(run.standard_output.find("'final:loss' is not compared: it is no finite number in 8 of 16 runs"),
            std::string::npos)
      << run.standard_output;
  const ProcessResult decided = RunShell(command + "--by final:loss");
  EXPECT_EQ(decided.exit_status, 3);
  EXPECT_NE(decided.standard_error.find("'after'"), std::string::npos) << decided.standard_error;
}

TEST(BenchToolTest, AFolderForTemporaryFilesThatDoesNotServeIsNamed) {
  const test::TemporaryFolder folder;
  const std::string command = " bench --before 'ls {dir}' --after true" + std::string(kQuick);
  const ProcessResult missing = RunShell("TMPDIR=/no/such" + command);
  EXPECT_EQ(missing.exit_status, 4);
  EXPECT_NE(missing.standard_error.find("TMPDIR"), std::string::npos) << missing.standard_error;
  std::filesystem::create_directory(folder.path("a;b c"));
  const ProcessResult unquoted = RunShell("TMPDIR='" + folder.path("a;b c") + "'" + command);
  EXPECT_EQ(unquoted.exit_status, 2);
  EXPECT_NE(unquoted.standard_error.find("TMPDIR"), std::string::npos) << unquoted.standard_error;
}

TEST(BenchToolTest, AFolderForTemporaryFilesMayHaveLettersBeyondAscii) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("caf\u00e9"));
  const ProcessResult run =
      RunShell("TMPDIR='" + folder.path("caf\u00e9") +
               "' bench --before 'cd {dir}' --after 'cd {dir}' --max-regression 9999" + std::string(kQuick));
  EXPECT_EQ(run.exit_status, 0) << run.standard_error;
}

TEST(BenchToolTest, AFolderForTemporaryFilesIsCheckedBeforeAnythingRuns) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("a;b"));
  test::WriteFile(folder.path("two.yaml"),
                  "stages:\n  - {name: a, before: echo >> ran, after: \"true\"}\n"
                  "  - {name: b, before: \"true\", after: \"ls {dir}\"}\n");
  const std::string start = "cd " + folder.path() + " && TMPDIR='" + folder.path("a;b") + "' bench ";
  EXPECT_EQ(RunShell(start + "--before 'echo >> ran' --after 'ls {dir}'" + kQuick).exit_status, 2);
  EXPECT_EQ(RunShell(start + "--stages two.yaml" + kQuick).exit_status, 2);
  EXPECT_FALSE(std::filesystem::exists(folder.path("ran")));
}

TEST(BenchToolTest, AFullDiskIsExitStatus4) {
  const std::string command = "bench --before true --after true --max-regression 9999" + std::string(kQuick);
  EXPECT_EQ(RunShell(command + "> /dev/full").exit_status, 4);
  EXPECT_EQ(RunShell(command + "--save /no/such/folder/x.json").exit_status, 4);
}

TEST(BenchToolTest, ASignalStopsTheCommandAndEndsWithItsStatus) {
  test::TemporaryFolder folder;
  const ProcessResult run =
      RunShell("timeout -s INT 1 bench --before 'sleep 20; touch " + folder.path("late") + "' --after true");
  EXPECT_EQ(run.exit_status, 124);  // timeout's own status: the signal was sent
  const ProcessResult own =
      RunShell("bench --before 'sleep 20' --after true & pid=$!; sleep 0.7; kill -TERM $pid; wait $pid");
  EXPECT_EQ(own.exit_status, 143);
  EXPECT_FALSE(std::filesystem::exists(folder.path("late")));
}

}  // namespace
}  // namespace trainwright
