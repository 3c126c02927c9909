#include "lib/run/settings_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "lib/run/instead_of_training.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::MessageOf;

struct Refusal {
  std::function<void(TrainSettings*)> change;
  const char* named;
};

/// Checks that each change is refused, naming the flag first.
void ExpectRefusals(const std::vector<Refusal>& refusals) {
  for (const auto& [change, named] : refusals) {
    SCOPED_TRACE(named);
    TrainSettings settings;
    change(&settings);
    const auto check = [&] { CheckTrainSettings(settings); };
    EXPECT_EQ(CodeOf(check), ErrorCode::kUsage);
    EXPECT_TRUE(MessageOf(check).starts_with(named)) << MessageOf(check);
  }
}

bool Passes(const std::function<void(TrainSettings*)>& change) {
  TrainSettings settings;
  change(&settings);
  return !CodeOf([&] { CheckTrainSettings(settings); });
}

TEST(RankSettingsTest, NumbersOutOfRangeAreRefused) {
  ExpectRefusals({{[](TrainSettings* settings) { settings->nproc = 0; }, "--nproc"},
                  {[](TrainSettings* settings) { settings->dist_timeout_s = 0.9; }, "--dist-timeout"},
                  {[](TrainSettings* settings) { settings->dist_timeout_s = INFINITY; }, "--dist-timeout"},
                  {[](TrainSettings* settings) { settings->ddp_bucket_mb = 0; }, "--ddp-bucket-mb"},
                  {[](TrainSettings* settings) { settings->exact_world = 3; }, "--exact-world"},
                  {[](TrainSettings* settings) { settings->exact_world = -4; }, "--exact-world"}});
  for (const int64_t exact : {0, 1, 2, 4, 1024}) {
    EXPECT_TRUE(Passes([&](TrainSettings* settings) { settings->exact_world = exact; })) << exact;
  }
}

TEST(RankSettingsTest, WhatSeveralRanksCannotDoIsRefused) {
  ExpectRefusals({{[](TrainSettings* settings) {
                     settings->nproc = 2;
                     settings->data = {"shards", "-"};
                   },
                   "--data -"},
                  {[](TrainSettings* settings) {
                     settings->nproc = 2;
                     settings->eval_data = {"-"};
                   },
                   "--eval-data -"},
                  {[](TrainSettings* settings) {
                     settings->nproc = 2;
                     settings->offload = "gradients";
                   },
                   "--offload gradients"},
                  {[](TrainSettings* settings) {
                     settings->nproc = 2;
                     settings->offload = "all";
                   },
                   "--offload all"}});
  EXPECT_TRUE(Passes([](TrainSettings* settings) { settings->data = {"-"}; }));
  EXPECT_TRUE(Passes([](TrainSettings* settings) { settings->offload = "all"; }));
  EXPECT_TRUE(Passes([](TrainSettings* settings) {
    settings->nproc = 2;
    settings->offload = "activations";
  }));
}

TEST(RankSettingsTest, AnExactWorldKeepsItsMicroBatches) {
  ExpectRefusals({{[](TrainSettings* settings) {
                     settings->exact_world = 4;
                     settings->auto_oom = true;
                   },
                   "--exact-world, --auto-oom"}});
  EXPECT_TRUE(Passes([](TrainSettings* settings) {
    settings->exact_world = 0;
    settings->auto_oom = true;
  }));
}

TEST(RankSettingsTest, WhatDoesNotGoTogetherWithADividedStateIsRefused) {
  ExpectRefusals({{[](TrainSettings* settings) { settings->zero = 3; }, "--zero 3"},
                  {[](TrainSettings* settings) { settings->zero = -1; }, "--zero"},
                  {[](TrainSettings* settings) { settings->zero_accum = "sum"; }, "--zero-accum"},
                  {[](TrainSettings* settings) {
                     settings->nproc = 2;
                     settings->zero = 1;
                     settings->compress_state = true;
                   },
                   "--compress-state, --zero 1"},
                  {[](TrainSettings* settings) {
                     settings->nproc = 2;
                     settings->zero = 2;
                     settings->async_save = "on";
                   },
                   "--async-save on, --zero 2"}});
  EXPECT_TRUE(Passes([](TrainSettings* settings) {
    settings->zero = 1;
    settings->compress_state = true;  // one process has nothing to divide
  }));
}

TEST(RankSettingsTest, GradientsOfLeavesOfSeveralMicroBatchesAreNotGivenAwayOneByOne) {
  TrainSettings settings;
  TrainPlan plan;
  plan.ranks = 2;
  plan.zero = 2;
  plan.accum = 2;
  plan.exact_world = 2;
  EXPECT_FALSE(plan.gives_gradients_away());
  EXPECT_FALSE(CodeOf([&] { CheckSharding(settings, plan); }).has_value());
  settings.zero_accum = "reduce";
  EXPECT_EQ(CodeOf([&] { CheckSharding(settings, plan); }), ErrorCode::kUsage);
  plan.accum = 1;
  EXPECT_TRUE(plan.gives_gradients_away());
  EXPECT_FALSE(CodeOf([&] { CheckSharding(settings, plan); }).has_value());
}

TEST(RankSettingsTest, APlanThatARunRemembersIsHeldToTheSame) {
  TrainSettings halving, offloading;
  halving.auto_oom = true;
  offloading.offload = "gradients";
  for (const StepDivision& division : {StepDivision{.ranks = 2}, StepDivision{.exact_world = 4}}) {
    EXPECT_EQ(CodeOf([&] { CheckStepDivision(offloading, division); }), ErrorCode::kUsage);
    EXPECT_EQ(CodeOf([&] { CheckStepDivision(halving, division); }).has_value(), division.exact_world > 0);
  }
  for (const TrainSettings& settings : {halving, offloading}) {
    EXPECT_FALSE(CodeOf([&] { CheckStepDivision(settings, {}); }));
  }
}

TEST(RankSettingsTest, AnExactWorldIsOfPowersOfTwoUpToIt) {
  TrainSettings settings;
  settings.exact_world = 4;
  for (const int64_t ranks : {1, 2, 4}) EXPECT_FALSE(CodeOf([&] { CheckRanks(settings, ranks); })) << ranks;
  for (const int64_t ranks : {3, 5, 8}) {
    EXPECT_EQ(CodeOf([&] { CheckRanks(settings, ranks); }), ErrorCode::kUsage) << ranks;
  }
}

OptionValue Given(const std::string& key, OptionOrigin origin = OptionOrigin::kCommandLine) {
  return {.key = key, .value = "x", .origin = origin};
}

TEST(InsteadOfTrainingTest, TwoThingsAreNotDoneInOneCall) {
  TrainSettings settings;
  settings.merge = "adapter";
  EXPECT_FALSE(CodeOf([&] { CheckInsteadOfTraining(settings, {}); }));
  settings.average = {"a", "b"};
  EXPECT_EQ(MessageOf([&] { CheckInsteadOfTraining(settings, {}); }),
            "--merge, --average: cannot both be done in one call | leave out one of them");
  settings.status = "run";
  EXPECT_TRUE(
      MessageOf([&] { CheckInsteadOfTraining(settings, {}); }).starts_with("--status, --merge: cannot"));
}

TEST(ScheduleOptionsTest, ALowestRateIsRefusedWhereTheScheduleStaysAtThePeak) {
  TrainSettings settings;
  settings.schedule = "constant";
  settings.min_lr_ratio = 0.5;
  EXPECT_EQ(
      MessageOf([&] { CheckScheduleOptions(settings, {}); }),
      "--min-lr-ratio: has no meaning with --schedule constant | constant stays at the peak; leave out one "
      "of the two");
  EXPECT_EQ(CodeOf([&] { CheckScheduleOptions(settings, {Given("min-lr-ratio")}); }), ErrorCode::kUsage);
  for (const OptionOrigin origin : {OptionOrigin::kPreset, OptionOrigin::kConfigFile}) {
    EXPECT_FALSE(CodeOf([&] { CheckScheduleOptions(settings, {Given("min-lr-ratio", origin)}); }));
  }
  settings.resume = true;
  EXPECT_FALSE(CodeOf([&] { CheckScheduleOptions(settings, {}); }));
  settings.resume = false;
  for (const double ratio : {0.0, 1.0}) {
    settings.min_lr_ratio = ratio;
    EXPECT_FALSE(CodeOf([&] { CheckScheduleOptions(settings, {}); }));
  }
  settings.schedule = "linear";
  settings.min_lr_ratio = 0.5;
  EXPECT_FALSE(CodeOf([&] { CheckScheduleOptions(settings, {}); }));
}

TEST(InsteadOfTrainingTest, NothingOfItIsForetold) {
  for (const bool explain : {false, true}) {
    TrainSettings settings;
    settings.dry_run = !explain;
    settings.explain = explain;
    const std::string key = explain ? "explain" : "dry-run";
    EXPECT_FALSE(CodeOf([&] { CheckInsteadOfTraining(settings, {Given(key)}); }));
    settings.average = {"a", "b"};
    EXPECT_FALSE(CodeOf([&] { CheckInsteadOfTraining(settings, {Given(key, OptionOrigin::kEnvironment)}); }));
    EXPECT_EQ(MessageOf([&] { CheckInsteadOfTraining(settings, {Given(key)}); }),
              "--average, --" + key +
                  ": cannot both be given: what is foretold is a training run | leave out one of them");
  }
}

TEST(InsteadOfTrainingTest, OptionsThatItDoesNotUseAreRefusedWhereTheUserGaveThem) {
  TrainSettings settings;
  EXPECT_FALSE(CodeOf([&] { CheckInsteadOfTraining(settings, {Given("steps")}); }));
  settings.merge = "adapter";
  const std::vector<OptionValue> used = {Given("merge"), Given("out"), Given("threads"), Given("init"),
                                         Given("allow-other-base")};
  EXPECT_FALSE(CodeOf([&] { CheckInsteadOfTraining(settings, used); }));
  EXPECT_EQ(MessageOf([&] {
              CheckInsteadOfTraining(settings, {Given("out"), Given("steps")});
            }),
            "--steps: has no meaning with --merge, which trains nothing | leave out --steps");
  for (const OptionOrigin origin :
       {OptionOrigin::kDefault, OptionOrigin::kConfigFile, OptionOrigin::kEnvironment}) {
    EXPECT_FALSE(CodeOf([&] { CheckInsteadOfTraining(settings, {Given("steps", origin)}); }));
  }
  OptionValue common = Given("summary");
  common.group = kCommonGroup;
  EXPECT_FALSE(CodeOf([&] { CheckInsteadOfTraining(settings, {common}); }));
}

}  // namespace
}  // namespace trainwright
