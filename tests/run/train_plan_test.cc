#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "lib/run/plan_codec.h"
#include "lib/run/resumed_plan.h"
#include "lib/run/run_planner.h"
#include "lib/spec/llama_family.h"
#include "lib/spec/objective_names.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::MessageOf;

ModelConfig SmallModel() {
  ModelConfig config;
  config.family = &LlamaFamily();
  config.hidden_size = 250;
  config.max_positions = 512;
  return config;
}

/// Of data of 1,000 samples and 400,000 tokens an epoch.
PlanFacts Facts() {
  return {.model = SmallModel(), .count_epoch = [](const TrainPlan&) {
            return EpochCounts{.samples = 1000, .tokens = 400000, .labels = 390000};
          }};
}

PlannedRun Plan(const TrainSettings& settings, bool fast_bf16 = false) {
  PlanFacts facts = Facts();
  facts.fast_bf16 = fast_bf16;
  return PlanRun(settings, facts);
}

std::string ReasonsOf(const PlannedRun& planned) {
  std::string all;
  for (const ChoiceReason& reason : planned.reasons) all += reason.line() + "\n";
  return all;
}

TEST(PlanRun, TrainsOneEpochWhenThatIsLongEnough) {
  // 1,000 samples, 4 a micro-batch of about 2,048 tokens.
  const PlannedRun planned = Plan({});
  EXPECT_EQ(planned.plan.batch, 4);
  EXPECT_EQ(planned.plan.schedule.total_steps, 250);
}

TEST(PlanRun, TrainsAHundredStepsOnLittleDataAndSaysWhy) {
  TrainSettings settings;
  settings.accum = 8;
  const PlannedRun planned = Plan(settings);
  EXPECT_EQ(planned.plan.schedule.total_steps, 100);
  EXPECT_NE(ReasonsOf(planned).find("100 steps, 3.2 epochs: one epoch of the data is 32 steps, too few"),
            std::string::npos)
      << ReasonsOf(planned);
}

TEST(PlanRun, TurnsEpochsAndTokensIntoWholeStepsRoundedUp) {
  TrainSettings epochs;
  epochs.batch = 7;
  epochs.epochs = 0.5;
  EXPECT_EQ(Plan(epochs).plan.schedule.total_steps, 72);  // 500 / 7 = 71.4
  TrainSettings tokens;
  tokens.batch = 10;
  tokens.tokens = 4001;  // 400 tokens a sample, 4,000 a step
  EXPECT_EQ(Plan(tokens).plan.schedule.total_steps, 2);
}

TEST(PlanRun, DoesNotCountTheDataWhenStepsAreGiven) {
  TrainSettings settings;
  settings.steps = 5;
  const PlannedRun planned = PlanRun(
      settings, {.model = SmallModel(),
                 .count_epoch = [](const TrainPlan&) -> EpochCounts { throw std::logic_error("counted"); }});
  EXPECT_EQ(planned.plan.schedule.total_steps, 5);
}

TEST(PlanRun, ChoosesBf16AutomaticallyWhereItIsFast) {
  TrainSettings settings;
  settings.mixed_precision = "auto";
  EXPECT_EQ(Plan(settings, /*fast_bf16=*/true).plan.precision, Precision::kBf16);
  EXPECT_EQ(Plan(settings, /*fast_bf16=*/false).plan.precision, Precision::kFp32);
}

TEST(PlanRun, FallsBackToFp16OnADeviceThatIsFastAtItAloneAndTellsWhy) {
  TrainSettings settings;
  settings.mixed_precision = "auto";
  PlanFacts facts = Facts();
  facts.fast_fp16 = true;
  const PlannedRun planned = PlanRun(settings, facts);
  EXPECT_EQ(planned.plan.precision, Precision::kFp16);
  EXPECT_NE(ReasonsOf(planned).find("precision fp16: this device has no bf16 GEMMs"), std::string::npos);
  settings.mixed_precision = "bf16";
  EXPECT_EQ(PlanRun(settings, facts).plan.precision, Precision::kBf16) << "which the device refuses then";
}

TEST(PlanRun, RefusesValuesOutOfRange) {
  const auto code = [](auto set) {
    TrainSettings settings;
    set(settings);
    return CodeOf([&] { Plan(settings); });
  };
  EXPECT_EQ(code([](TrainSettings& s) { s.steps = 0; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.epochs = 0.0; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.epochs = 1e30; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.tokens = -1; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.batch = 0; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.accum = 0; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.seq = 0; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.seq = 513; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.lr = -1.0; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.min_lr_ratio = 1.5; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.warmup = -1; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.warmup = 251, s.schedule = "wsd"; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.warmup = 251, s.schedule = "one-cycle"; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.warmup_ratio = 1.1; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.warmup_ratio = 0.1, s.warmup = 1; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.clip = -1.0; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.beta1 = 1.0; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.beta2 = -0.1; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.adam_eps = -1e-8; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.z_loss = -1.0; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.label_smoothing = 1.0; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.mixed_precision = "fp8"; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](TrainSettings& s) { s.steps = 1, s.epochs = 1; }), ErrorCode::kUsage);
}

TEST(TrainPlan, ReadsBackWhatWasStored) {
  TrainSettings settings;
  settings.lr = 0.1 + 0.2;  // no short decimal
  settings.seed = UINT64_MAX;
  settings.schedule = "linear";
  settings.mixed_precision = "fp16";
  const TrainPlan plan = Plan(settings).plan;
  const std::string text = EncodePlan(plan).dump();
  EXPECT_EQ(EncodePlan(DecodePlan(nlohmann::json::parse(text), "x")).dump(), text);
  EXPECT_EQ(DecodePlan(nlohmann::json::parse(text), "x").schedule.peak_lr, 0.1 + 0.2);
}

TEST(TrainPlan, ReadsBackEveryLever) {
  TrainSettings settings;
  settings.schedule = "one-cycle";
  settings.steps = 25;  // a tenth of which is no whole number
  settings.cycle_momentum = true;
  settings.beta2 = 0.98;
  settings.adam_eps = 1e-6;
  settings.z_loss = 1e-4;
  settings.label_smoothing = 0.1;
  settings.drop_last = true;
  const std::string text = EncodePlan(Plan(settings).plan).dump();
  const TrainPlan plan = DecodePlan(nlohmann::json::parse(text), "x");
  EXPECT_EQ(EncodePlan(plan).dump(), text);
  EXPECT_EQ(plan.schedule.warmup_steps, 2.5);
  EXPECT_TRUE(plan.schedule.cycle_beta1);
  EXPECT_EQ(plan.optimizer.beta2, 0.98);
  EXPECT_EQ(plan.optimizer.epsilon, 1e-6);
  EXPECT_EQ(plan.loss_addends.z_loss, 1e-4);
  EXPECT_EQ(plan.loss_addends.label_smoothing, 0.1);
  EXPECT_TRUE(plan.drop_last);
}

TEST(PlanRun, WsdDecaysToZeroOverAFifthOfTheRun) {
  TrainSettings settings;
  settings.schedule = "wsd";
  settings.steps = 1000;
  const ScheduleOptions schedule = Plan(settings).plan.schedule;
  EXPECT_EQ(schedule.decay_steps, 200);
  EXPECT_EQ(schedule.final_lr_ratio, 0.0);
}

TEST(PlanRun, WsdFitsItsDecayBehindTheWarmUp) {
  TrainSettings settings;
  settings.schedule = "wsd";
  settings.steps = 10;
  settings.warmup = 9;
  EXPECT_EQ(Plan(settings).plan.schedule.decay_steps, 1);
  settings.decay_steps = 2;
  EXPECT_EQ(MessageOf([&] { Plan(settings); }).rfind("--decay-steps", 0), 0u);
}

TEST(PlanRun, RefusesAWarmUpThatLeavesWsdNoDecay) {
  TrainSettings settings;
  settings.schedule = "wsd";
  settings.steps = 10;
  settings.warmup_ratio = 1.0;
  EXPECT_EQ(MessageOf([&] { Plan(settings); }).rfind("--warmup: 10 steps leave none", 0), 0u);
}

TEST(PlanRun, RefusesLeversOfAnotherSchedule) {
  const auto named = [](const char* schedule, const char* flag, auto set) {
    TrainSettings settings;
    settings.schedule = schedule;
    set(settings);
    const std::string message = MessageOf([&] { Plan(settings); });
    EXPECT_EQ(message.rfind(flag, 0), 0u) << message;
  };
  named("cosine", "--decay-steps", [](TrainSettings& s) { s.decay_steps = 5; });
  named("wsd", "--cycle-momentum", [](TrainSettings& s) { s.cycle_momentum = true; });
  named("one-cycle", "--min-lr-ratio", [](TrainSettings& s) { s.min_lr_ratio = 0.1; });
  named("one-cycle", "--beta1", [](TrainSettings& s) { s.cycle_momentum = true, s.beta1 = 0.9; });
}

TEST(PlanRun, CountsOnlyWholeStepsOfAnEpochWhenTheLastIsDropped) {
  TrainSettings settings;
  settings.batch = 7;
  settings.epochs = 3;
  EXPECT_EQ(Plan(settings).plan.schedule.total_steps, 429);  // 3000 / 7 = 428.6
  settings.drop_last = true;
  EXPECT_EQ(Plan(settings).plan.schedule.total_steps, 426);  // 3 times 142
  settings.batch = 1001;
  EXPECT_EQ(CodeOf([&] { Plan(settings); }), ErrorCode::kUsage);
}

TEST(TrainPlan, RefusesAStoredPlanThatLacksAField) {
  TrainSettings settings;
  settings.warmup = 12;  // that nobody asked for it is said by a field which states of before lack
  const nlohmann::json whole = nlohmann::json::parse(EncodePlan(Plan(settings).plan).dump());
  for (const auto& [name, value] : whole.items()) {
    nlohmann::json cut = whole;
    cut.erase(name);
    EXPECT_EQ(CodeOf([&] { DecodePlan(cut, "x"); }), ErrorCode::kBadInput) << name;
  }
}

TEST(ReconcilePlan, AcceptsTheFlagsThatStartedTheRun) {
  TrainSettings settings;
  settings.epochs = 2.0;
  settings.batch = 2;
  settings.accum = 8;
  settings.lr = 1e-3;
  settings.mixed_precision = "bf16";
  TrainPlan plan = Plan(settings).plan;
  const std::string before = EncodePlan(plan).dump();
  EXPECT_TRUE(ReconcilePlan(settings, &plan).empty());
  EXPECT_EQ(EncodePlan(plan).dump(), before);
}

TEST(ReconcilePlan, RefusesFlagsThatAskForAnotherRun) {
  const auto message = [](auto set) {
    TrainPlan plan = Plan({}).plan;
    TrainSettings settings;
    set(settings);
    return MessageOf([&] { ReconcilePlan(settings, &plan); });
  };
  const auto expect_named = [&](const char* flag, auto set) {
    EXPECT_EQ(message(set).rfind(flag, 0), 0u) << flag << ": " << message(set);
  };
  expect_named("--steps", [](TrainSettings& s) { s.steps = 251; });
  expect_named("--epochs", [](TrainSettings& s) { s.epochs = 3; });
  expect_named("--tokens", [](TrainSettings& s) { s.tokens = 3; });
  expect_named("--seq", [](TrainSettings& s) { s.seq = 128; });
  expect_named("--lr", [](TrainSettings& s) { s.lr = 1; });
  expect_named("--schedule", [](TrainSettings& s) { s.schedule = "linear"; });
  expect_named("--warmup", [](TrainSettings& s) { s.warmup = 3; });
  expect_named("--decay-steps", [](TrainSettings& s) { s.decay_steps = 3; });
  expect_named("--cycle-momentum", [](TrainSettings& s) { s.cycle_momentum = true; });
  expect_named("--beta1", [](TrainSettings& s) { s.beta1 = 0.5; });
  expect_named("--beta2", [](TrainSettings& s) { s.beta2 = 0.5; });
  expect_named("--adam-eps", [](TrainSettings& s) { s.adam_eps = 0.5; });
  expect_named("--z-loss", [](TrainSettings& s) { s.z_loss = 0.5; });
  expect_named("--label-smoothing", [](TrainSettings& s) { s.label_smoothing = 0.5; });
  expect_named("--drop-last", [](TrainSettings& s) { s.drop_last = true; });
  expect_named("--tbptt", [](TrainSettings& s) { s.tbptt = 64; });
  expect_named("--weight-decay", [](TrainSettings& s) { s.weight_decay = 0; });
  expect_named("--clip", [](TrainSettings& s) { s.clip = 0; });
  expect_named("--seed", [](TrainSettings& s) { s.seed = 1; });
  expect_named("--mixed-precision", [](TrainSettings& s) { s.mixed_precision = "bf16"; });
  expect_named("--batch, --accum", [](TrainSettings& s) { s.batch = 3; });
  expect_named("--batch, --accum", [](TrainSettings& s) { s.accum = 2, s.batch = 4; });
}

TEST(ReconcilePlan, TakesAnotherSplitOfTheSameStepWithAWarning) {
  TrainPlan plan = Plan({}).plan;  // 4 x 1
  TrainSettings settings;
  settings.batch = 1;
  EXPECT_EQ(ReconcilePlan(settings, &plan).size(), 1u);
  EXPECT_EQ(plan.batch, 1);
  EXPECT_EQ(plan.accum, 4);
}

/// Of a run of 4 x 6 samples a step on each of 2 ranks.
TrainPlan OnTwoRanks(int64_t exact_world = 0) {
  TrainPlan plan;
  plan.batch = 4;
  plan.accum = 6;
  plan.ranks = 2;
  plan.exact_world = exact_world;
  return plan;
}

TEST(TakeRanks, KeepsTheStepOnAnotherNumberOfRanks) {
  for (const auto& [ranks, accum] : {std::pair<int64_t, int64_t>(1, 12), {2, 6}, {3, 4}, {4, 3}, {12, 1}}) {
    TrainPlan plan = OnTwoRanks();
    const auto warnings = TakeRanks(ranks, &plan);
    EXPECT_EQ(plan.ranks, ranks);
    EXPECT_EQ(plan.batch, 4);
    EXPECT_EQ(plan.accum, accum);
    EXPECT_EQ(plan.samples_per_step(), 48);
    EXPECT_EQ(warnings.size(), ranks == 2 ? 0u : 1u) << "sums in another order";
  }
}

TEST(TakeRanks, RefusesRanksThatCannotHaveAsManyMicroBatchesEach) {
  for (const int64_t ranks : {5, 8, 24}) {
    TrainPlan plan = OnTwoRanks();
    EXPECT_EQ(CodeOf([&] { TakeRanks(ranks, &plan); }), ErrorCode::kUsage) << ranks;
    EXPECT_EQ(plan.ranks, 2) << "as it was";
  }
}

TEST(TakeRanks, UnderExactWorldAreAnyThatDivideItAndNothingToWarnOf) {
  for (const int64_t ranks : {1, 2, 4}) {
    TrainPlan plan = OnTwoRanks(4);
    EXPECT_TRUE(TakeRanks(ranks, &plan).empty());
    EXPECT_EQ(plan.accum * ranks, 12);
  }
  for (const int64_t ranks : {3, 6, 12}) {
    TrainPlan plan = OnTwoRanks(4);
    EXPECT_EQ(MessageOf([&] { TakeRanks(ranks, &plan); }).rfind("--exact-world 4", 0), 0u) << ranks;
  }
}

TEST(ReconcilePlan, OnOtherRanksTakesTheFlagsThatStartedTheRun) {
  TrainSettings settings;
  settings.batch = 4;
  settings.accum = 6;
  TrainPlan plan = OnTwoRanks();
  EXPECT_EQ(ReconcilePlan(settings, &plan, 4).size(), 1u);
  EXPECT_EQ(plan.accum, 3);
  EXPECT_TRUE(ReconcilePlan(settings, &plan, 4).empty()) << "started once more";
  EXPECT_EQ(plan.accum, 3);
  settings.batch.reset();
  EXPECT_EQ(ReconcilePlan(settings, &plan, 2).size(), 1u);
  EXPECT_EQ(plan.batch, 4);
  EXPECT_EQ(plan.accum, 6);
}

TEST(ReconcilePlan, OnOtherRanksTakesAnotherSplitOfTheSameStep) {
  TrainSettings settings;
  settings.batch = 2;
  TrainPlan plan = OnTwoRanks();
  EXPECT_EQ(ReconcilePlan(settings, &plan, 8).size(), 1u);
  EXPECT_EQ(plan.batch, 2);
  EXPECT_EQ(plan.accum, 3);
  EXPECT_EQ(plan.ranks, 8);
  settings.accum = 5;
  EXPECT_EQ(CodeOf([&] { ReconcilePlan(settings, &plan, 8); }), ErrorCode::kUsage);
}

TEST(ReconcilePlan, RefusesAnotherExactWorldAndUnequalLeaves) {
  TrainPlan plan = OnTwoRanks(4);
  TrainSettings settings;
  settings.exact_world = 2;
  EXPECT_EQ(MessageOf([&] { ReconcilePlan(settings, &plan, 2); }).rfind("--exact-world", 0), 0u);
  settings.exact_world = 4;
  EXPECT_TRUE(ReconcilePlan(settings, &plan, 2).empty());
  settings.batch = 8;  // 6 micro-batches on all ranks
  EXPECT_EQ(CodeOf([&] { ReconcilePlan(settings, &plan, 2); }), ErrorCode::kUsage);
}

TEST(EncodeLastingPlan, IsTheSameAfterWhatAResumedRunMayChange) {
  TrainPlan plan;
  plan.batch = 8;
  plan.accum = 2;
  plan.max_batch_tokens = 900;
  plan.objective_own = {{"num_samples", "counts.json"}};
  plan.objective = kGritObjective;
  const nlohmann::json lasting = EncodeLastingPlan(plan);
  const auto changed = [&](auto change) {
    TrainPlan other = plan;
    change(&other);
    return EncodeLastingPlan(other);
  };
  const auto split = [](TrainPlan* other) { other->batch = other->accum = 4; };
  EXPECT_EQ(changed(split), lasting);
  EXPECT_EQ(changed([](TrainPlan* other) { other->max_batch_tokens = 300; }), lasting);
  EXPECT_EQ(changed([](TrainPlan* other) { other->objective_own["num_samples"] = "there/x.json"; }), lasting);
  EXPECT_EQ(changed([](TrainPlan* other) { other->objective_own.clear(); }), lasting);
  EXPECT_EQ(changed([](TrainPlan* other) { other->objective_own["split_emb"] = "full"; }), lasting);
  EXPECT_NE(changed([](TrainPlan* other) { other->batch = 4; }), lasting);
  EXPECT_NE(changed([](TrainPlan* other) { other->seed = 9; }), lasting);
  EXPECT_NE(changed([](TrainPlan* other) { other->objective_own["temperature"] = 0.5; }), lasting);
}

TEST(ReconcilePlan, TakesAnotherDivisionOfTheState) {
  TrainPlan plan = OnTwoRanks();
  TrainSettings settings;
  settings.zero = 2;
  settings.zero_accum = "keep";
  EXPECT_TRUE(ReconcilePlan(settings, &plan, 2).empty());
  EXPECT_EQ(plan.sharding(), Sharding::kGradients);
  EXPECT_FALSE(plan.gives_gradients_away());
  EXPECT_TRUE(ReconcilePlan(TrainSettings(), &plan, 2).empty());
  EXPECT_EQ(plan.zero, 2) << "the run's, where nothing is said";
  settings.zero = 0;
  ReconcilePlan(settings, &plan, 2);
  EXPECT_EQ(plan.sharding(), Sharding::kNone);
}

TEST(TakeRecordedDivision, TakesWhatTheRunWasToldSinceItsCheckpointAndSaysSo) {
  TrainPlan recorded = OnTwoRanks(), plan = OnTwoRanks();
  recorded.batch = 2;
  recorded.accum = 24;
  recorded.ranks = 1;
  recorded.max_batch_tokens = 512;
  recorded.zero = 2;
  recorded.zero_accumulation = ZeroAccumulation::kKeep;
  recorded.seed = plan.seed + 1;
  const std::vector<std::string> warnings = TakeRecordedDivision(recorded, &plan);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_EQ(warnings[0].rfind("micro-batches of at most 512 tokens instead of", 0), 0u) << warnings[0];
  EXPECT_EQ(warnings[1].rfind("micro-batches of 2 samples instead of the run's 4", 0), 0u) << warnings[1];
  recorded.seed = plan.seed;
  EXPECT_EQ(EncodePlan(plan), EncodePlan(recorded)) << "all but what cannot change";
}

TEST(TakeRecordedDivision, TakesHowTheObjectiveComputesTheStep) {
  TrainPlan plan;
  plan.objective = kGritObjective;
  plan.objective_own = {{"split_emb", "no"}, {"temperature", 0.02}};
  TrainPlan recorded = plan;
  recorded.objective_own = {{"split_emb", "full"}, {"temperature", 0.5}};
  EXPECT_EQ(TakeRecordedDivision(recorded, &plan).size(), 1u);
  EXPECT_EQ(plan.objective_own, (OwnOptions{{"split_emb", "full"}, {"temperature", 0.02}}));
}

TEST(TakeRecordedDivision, LeavesTheStepToTheRanksThatGoOnWhereMicroBatchesAreAsLarge) {
  TrainPlan recorded = OnTwoRanks(), plan = OnTwoRanks();
  recorded.accum = 12;
  recorded.ranks = 1;
  recorded.zero = 1;
  EXPECT_TRUE(TakeRecordedDivision(recorded, &plan).empty());
  EXPECT_EQ(plan.accum, 6);
  EXPECT_EQ(plan.ranks, 2);
  EXPECT_EQ(plan.zero, 1);
}

TEST(TakeRecordedDivision, TakesNothingOfAStepOfAnotherSize) {
  TrainPlan recorded = OnTwoRanks(), plan = OnTwoRanks();
  recorded.accum = 7;
  recorded.zero = 1;
  EXPECT_TRUE(TakeRecordedDivision(recorded, &plan).empty());
  EXPECT_EQ(EncodePlan(plan), EncodePlan(OnTwoRanks()));
}

TEST(TrainPlan, StoresHowItsStateIsDividedWhereItIs) {
  TrainPlan plan = OnTwoRanks();
  EXPECT_FALSE(EncodePlan(plan).contains("zero"));
  plan.zero = 2;
  plan.zero_accumulation = ZeroAccumulation::kKeep;
  const nlohmann::json stored = nlohmann::json::parse(EncodePlan(plan).dump());
  EXPECT_EQ(stored.at("zero"), 2);
  EXPECT_EQ(stored.at("zero_accum"), "keep");
  EXPECT_EQ(DecodePlan(stored, "x").zero_accumulation, ZeroAccumulation::kKeep);
  EXPECT_EQ(PlanAsOptions(plan).at("zero"), 2);
  for (const int64_t zero : {-1, 3}) {
    nlohmann::json edited = stored;
    edited["zero"] = zero;
    EXPECT_EQ(CodeOf([&] { DecodePlan(edited, "x"); }), ErrorCode::kBadInput) << zero;
  }
}

TEST(TrainPlan, StoresThePiecesOfAMicroBatchWhereItHasThem) {
  TrainPlan plan = Plan({}).plan;
  EXPECT_FALSE(EncodePlan(plan).contains("tbptt"));
  EXPECT_FALSE(PlanAsOptions(plan).contains("tbptt"));
  plan.tbptt = 4096;
  nlohmann::json stored = nlohmann::json::parse(EncodePlan(plan).dump());
  EXPECT_EQ(stored.at("tbptt"), 4096);
  EXPECT_EQ(DecodePlan(stored, "x").tbptt, 4096);
  EXPECT_EQ(PlanAsOptions(plan).at("tbptt"), 4096);
  stored["tbptt"] = -1;
  EXPECT_EQ(CodeOf([&] { DecodePlan(stored, "x"); }), ErrorCode::kBadInput);
}

TEST(PlanRun, AStepIsThatOfAllRanks) {
  TrainSettings settings;
  settings.batch = 4;
  settings.accum = 2;
  PlanFacts facts = Facts();
  facts.ranks = 3;
  EXPECT_EQ(PlanRun(settings, facts).plan.samples_per_step(), 24);
  settings.exact_world = 4;
  EXPECT_EQ(MessageOf([&] { PlanRun(settings, facts); }).rfind("--exact-world 4", 0), 0u);
  facts.ranks = 4;
  EXPECT_EQ(PlanRun(settings, facts).plan.exact_world, 4);
  settings.accum = 3;
  facts.ranks = 2;
  EXPECT_EQ(CodeOf([&] { PlanRun(settings, facts); }), ErrorCode::kUsage) << "6 micro-batches";
  settings.accum = 2;
  settings.exact_world = 6;
  EXPECT_EQ(CodeOf([&] { PlanRun(settings, facts); }), ErrorCode::kUsage) << "no power of two";
}

TEST(PlanRun, RefusesAStepOfMoreSamplesThanAProcessReads) {
  const auto refused = [](int64_t batch, int64_t accum, int64_t ranks) {
    TrainSettings settings;
    settings.steps = 1;
    settings.batch = batch;
    settings.accum = accum;
    PlanFacts facts = Facts();
    facts.ranks = ranks;
    return MessageOf([&] { PlanRun(settings, facts); }).rfind("--batch, --accum: make steps of", 0) == 0;
  };
  EXPECT_FALSE(refused(1 << 10, 1 << 12, 1));
  EXPECT_FALSE(refused(1 << 10, 1 << 10, 4));
  EXPECT_TRUE(refused(1 << 10, 1 << 10, 5));
  EXPECT_TRUE(refused((1 << 10) + 1, 1 << 12, 1));
  EXPECT_TRUE(refused(8, 999999999999, 1));
  EXPECT_TRUE(refused(INT64_MAX, INT64_MAX, 2)) << "more than a number holds";
}

TEST(TrainPlan, StoresRanksAndExactWorldWhereTheyAreNotAlone) {
  const nlohmann::json stored = nlohmann::json::parse(EncodePlan(OnTwoRanks(4)).dump());
  EXPECT_EQ(stored.at("ranks"), 2);
  EXPECT_EQ(stored.at("exact_world"), 4);
  EXPECT_EQ(DecodePlan(stored, "x").samples_per_step(), 48);
  EXPECT_FALSE(EncodePlan(TrainPlan()).contains("ranks"));
  EXPECT_FALSE(EncodePlan(TrainPlan()).contains("exact_world"));
  const std::pair<const char*, int64_t> edits[] = {
      {"ranks", 0}, {"ranks", int64_t{1} << 40}, {"exact_world", 3}, {"exact_world", -1}};
  for (const auto& [name, value] : edits) {
    nlohmann::json edited = stored;
    edited[name] = value;
    EXPECT_EQ(CodeOf([&] { DecodePlan(edited, "x"); }), ErrorCode::kBadInput) << name << " " << value;
  }
  nlohmann::json huge = stored;
  huge["batch"] = huge["accum"] = int64_t{1} << 31;
  huge["ranks"] = 1 << 20;
  EXPECT_EQ(CodeOf([&] { DecodePlan(huge, "x"); }), ErrorCode::kBadInput) << "2^82 samples a step";
}

}  // namespace
}  // namespace trainwright
