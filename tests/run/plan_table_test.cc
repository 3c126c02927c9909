#include "lib/run/plan_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <type_traits>

#include "lib/run/explanation.h"
#include "lib/run/plan_codec.h"
#include "lib/run/resumed_plan.h"
#include "lib/run/run_planner.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::MessageOf;

// A row cannot leave out what states mean that lack it.
static_assert(!std::is_default_constructible_v<OldStates>);
static_assert(!std::is_default_constructible_v<PlanOption>);

/// As trainwright.state/1 has it; 0.1.0 wrote it.
constexpr char kFirstPlan[] =
    R"({"batch":4,"accum":2,"sequence_tokens":512,"window_chunks":64,"seed":7,"precision":"bf16",)"
    R"("total_steps":250,"length_rule":"default","schedule":"cosine","lr":0.002,"min_lr_ratio":0.1,)"
    R"("warmup_steps":12,"beta1":0.9,"beta2":0.95,"epsilon":1e-08,"weight_decay":0.1,"clip":1.0})";

/// As trainwright.state/2 has it since its beginning, in its order.
constexpr char kSecondPlan[] =
    R"({"batch":4,"accum":2,"sequence_tokens":512,"window_chunks":64,"seed":7,"precision":"bf16",)"
    R"("total_steps":250,"length_rule":"default","schedule":"cosine","lr":0.002,"min_lr_ratio":0.1,)"
    R"("warmup_steps":12,"decay_steps":0,"cycle_momentum":false,"beta1":0.9,"beta2":0.95,"epsilon":1e-08,)"
    R"("weight_decay":0.1,"optimizer_states":"fp32","clip":1.0,"objective":"lm","loss_on":"assistant",)"
    R"("z_loss":0.0,"label_smoothing":0.0,"drop_last":false,"eval_split":null,"lora":null,"quant":"none"})";

/// With all that a state may hold.
constexpr char kFullPlan[] =
    R"({"batch":4,"accum":2,"sequence_tokens":512,"window_chunks":256,"seed":18446744073709551615,)"
    R"("precision":"fp16","total_steps":25,"length_rule":"epochs 0.5","schedule":"one-cycle","lr":0.0002,)"
    R"("min_lr_ratio":4e-06,"warmup_steps":2.5,"decay_steps":3,"cycle_momentum":true,"beta1":0.9,)"
    R"("beta2":0.98,"epsilon":1e-06,"weight_decay":0.0,"optimizer_states":"bf16","clip":0.5,)"
    R"("objective":"sft","loss_on":"all","z_loss":0.0001,"label_smoothing":0.1,"drop_last":true,)"
    R"("eval_split":{"asked":"200","seed":3,"bound":18446744073709551615},)"
    R"("lora":{"rank":8,"alpha":16.0,"dropout":0.05,"targets":"q_proj,v_proj","rank_stabilized":true},)"
    R"("quant":"nf4","block_chunks":4,"data_weights":"0.7,0.3"})";

TEST(PlanTable, StatesOfTheFirstVersionAreReadWithLaterOptionsOff) {
  nlohmann::json first = nlohmann::json::parse(kFirstPlan);
  CompleteFirstPlan(&first);
  EXPECT_EQ(EncodePlan(DecodePlan(first, "x")).dump(), kSecondPlan);
}

// Whatever rows came since: one that says less than AnyMayLackIt makes these unreadable, one that stores what
// old states mean changes them.
TEST(PlanTable, StatesFromBeforeALaterRowAreReadAndWrittenAgainToTheByte) {
  for (const char* stored : {kSecondPlan, kFullPlan}) {
    EXPECT_EQ(EncodePlan(DecodePlan(nlohmann::json::parse(stored), "x")).dump(), stored);
  }
}

TEST(PlanTable, TellsTheOptionsThatMakeThePlanInTheOrderOfConfigYaml) {
  EXPECT_EQ(PlanAsOptions(DecodePlan(nlohmann::json::parse(kSecondPlan), "x")).dump(),
            R"({"steps":250,"batch":4,"accum":2,"seq":512,"lr":0.002,"schedule":"cosine","beta2":0.95,)"
            R"("adam-eps":1e-08,"weight-decay":0.1,"optimizer-states":"fp32","clip":1.0,"objective":"lm",)"
            R"("z-loss":0.0,"label-smoothing":0.0,"drop-last":false,"seed":7,"mixed-precision":"bf16",)"
            R"("warmup":12,"min-lr-ratio":0.1,"beta1":0.9})");
  EXPECT_EQ(PlanAsOptions(DecodePlan(nlohmann::json::parse(kFullPlan), "x")).dump(),
            R"({"steps":25,"batch":4,"accum":2,"seq":512,"lr":0.0002,"schedule":"one-cycle","beta2":0.98,)"
            R"("adam-eps":1e-06,"weight-decay":0.0,"optimizer-states":"bf16","clip":0.5,"objective":"sft",)"
            R"("z-loss":0.0001,"label-smoothing":0.1,"drop-last":true,"seed":18446744073709551615,)"
            R"("mixed-precision":"fp16","shuffle-block":4,"data-weights":"0.7,0.3","loss-on":"all",)"
            R"("eval-split":"200","eval-split-seed":3,"lora":8,"lora-alpha":16.0,"lora-dropout":0.05,)"
            R"("lora-targets":"q_proj,v_proj","rslora":true,"quant":"nf4","cycle-momentum":true})");
}

TEST(PlanTable, StoresOptionsThatOnlyAnObjectiveOrAnOptimizerHasWhereThereAreAny) {
  TrainPlan plan;
  plan.optimizer.name = "toy";
  plan.optimizer.own = {{"period", 3}};
  plan.objective = "toy";
  plan.objective_own = {{"even_weight", 0.5}};
  const std::string stored = EncodePlan(plan).dump();
  const TrainPlan read = DecodePlan(nlohmann::json::parse(stored), "x");
  EXPECT_EQ(read.optimizer.name, "toy");
  EXPECT_EQ(read.optimizer.own, plan.optimizer.own);
  EXPECT_EQ(read.objective, "toy");
  EXPECT_EQ(read.objective_own, plan.objective_own);
  EXPECT_EQ(EncodePlan(read).dump(), stored);
  for (const char* name : {"optimizer", "optimizer_options", "objective_options"}) {
    EXPECT_FALSE(EncodePlan(TrainPlan()).contains(name)) << name;
  }
}

TEST(PlanTable, StoresAndTellsKindsOfAdaptersWhereTheyAreOn) {
  TrainPlan plan;
  plan.tuning.lora = LoraOptions{.rank = 4, .alpha = 8};
  for (const char* name : {"dora", "saved_modules"}) {
    EXPECT_FALSE(EncodePlan(plan).at("lora").contains(name)) << name;
  }
  for (const char* name : {"rslora", "dora", "lora-save-modules"}) {
    EXPECT_FALSE(PlanAsOptions(plan).contains(name)) << name;
  }
  plan.tuning.lora->rank_stabilized = plan.tuning.lora->dora = true;
  plan.tuning.lora->saved_modules = "embed_tokens,lm_head";
  EXPECT_EQ(DecodePlan(nlohmann::json::parse(EncodePlan(plan).dump()), "x").tuning.lora, plan.tuning.lora);
  const nlohmann::ordered_json told = PlanAsOptions(plan);
  EXPECT_EQ(told.at("rslora"), true);
  EXPECT_EQ(told.at("dora"), true);
  EXPECT_EQ(told.at("lora-save-modules"), "embed_tokens,lm_head");
}

TEST(PlanTable, KindsOfAdaptersThatTheRunHasNotAreRefusedOnResume) {
  TrainPlan plan;
  plan.tuning.lora = LoraOptions{.rank = 4, .alpha = 8, .saved_modules = "lm_head"};
  const auto said = [&](const auto& ask) {
    TrainSettings settings;
    ask(settings);
    TrainPlan kept = plan;
    return MessageOf([&] { ReconcilePlan(settings, &kept, /*ranks=*/1); });
  };
  EXPECT_THAT(said([](TrainSettings& asked) { asked.rslora = true; }), testing::StartsWith("--rslora: "));
  EXPECT_THAT(said([](TrainSettings& asked) { asked.dora = true; }), testing::StartsWith("--dora: "));
  EXPECT_THAT(said([](TrainSettings& asked) { asked.lora_save_modules = "embed_tokens"; }),
              testing::StartsWith("--lora-save-modules: embed_tokens differs from the run's lm_head"));
  plan.tuning.lora->rank_stabilized = plan.tuning.lora->dora = true;
  TrainSettings same;
  same.rslora = same.dora = true;
  same.lora_save_modules = "lm_head";
  EXPECT_TRUE(ReconcilePlan(same, &plan, /*ranks=*/1).empty());
}

TEST(PlanTable, ModulesWithAdaptersAreTheSameInWhateverOrderTheyAreNamed) {
  TrainPlan plan;
  plan.tuning.lora = LoraOptions{.rank = 4, .alpha = 8};
  plan.tuning.lora->targets = "q_proj,v_proj";
  TrainSettings same, fewer;
  same.lora_targets = "v_proj,q_proj";
  EXPECT_TRUE(ReconcilePlan(same, &plan, /*ranks=*/1).empty());
  fewer.lora_targets = "q_proj";
  EXPECT_THAT(MessageOf([&] { ReconcilePlan(fewer, &plan, /*ranks=*/1); }),
              testing::StartsWith("--lora-targets: q_proj differs from the run's q_proj,v_proj"));
}

TEST(PlanTable, StoresAndTellsFp8WhereItIsOnAndRefusesAnUnknownName) {
  TrainPlan plan;
  EXPECT_FALSE(EncodePlan(plan).contains("fp8"));
  EXPECT_FALSE(PlanAsOptions(plan).contains("fp8"));
  for (const Fp8Parts parts :
       {Fp8Parts{.mlp = true}, Fp8Parts{.head = true}, Fp8Parts{.mlp = true, .head = true}}) {
    plan.fp8 = parts;
    EXPECT_EQ(EncodePlan(plan).at("fp8"), Fp8PartsName(parts));
    EXPECT_EQ(DecodePlan(nlohmann::json::parse(EncodePlan(plan).dump()), "x").fp8, parts);
    EXPECT_EQ(PlanAsOptions(plan).at("fp8"), Fp8PartsName(parts));
  }
  nlohmann::json other = nlohmann::json::parse(kSecondPlan);
  other["fp8"] = "attention";
  EXPECT_EQ(CodeOf([&] { DecodePlan(other, "x"); }), ErrorCode::kBadInput);
}

TEST(PlanTable, RefusesSizesThatNoRunHas) {
  const nlohmann::json whole = nlohmann::json::parse(kSecondPlan);
  const std::pair<const char*, int64_t> edits[] = {
      {"batch", 0},       {"batch", int64_t{1} << 40},       {"accum", 0},        {"sequence_tokens", 0},
      {"total_steps", 0}, {"total_steps", int64_t{1} << 41}, {"decay_steps", -1}, {"window_chunks", 0}};
  for (const auto& [name, size] : edits) {
    nlohmann::json edited = whole;
    edited[name] = size;
    EXPECT_EQ(CodeOf([&] { DecodePlan(edited, "x"); }), ErrorCode::kBadInput) << name << " " << size;
  }
}

/// The long names of train's options, as the frozen command line has them; a test holds that to the program.
std::set<std::string> TrainOptions() {
  const std::string frozen = test::ReadFile(std::string(TRAINWRIGHT_SOURCE_DIR) + "/tests/cli/cli.json");
  std::set<std::string> names;
  for (const nlohmann::json& tool : nlohmann::json::parse(frozen)) {
    if (tool.at("tool") != "train") continue;
    for (const nlohmann::json& option : tool.at("options")) {
      for (const auto& name : option.value("long", std::vector<std::string>())) names.insert(name);
    }
  }
  return names;
}

TEST(PlanTable, EveryRowHasANameOfItsOwnAndOptionsOfTrain) {
  const std::set<std::string> options = TrainOptions();
  ASSERT_GT(options.size(), 50u);
  // These follow from --shuffle-block, from the length, from who trains the run, and from what nobody asked.
  std::set<std::string> without = {"window_chunks", "length_rule", "ranks", "usual_warmup", "usual_decay"};
  std::set<std::string> stored;
  for (const PlanOption& row : TrainPlanTable()) {
    EXPECT_TRUE(stored.insert(row.stored).second) << row.stored;
    EXPECT_EQ(row.options.empty(), without.erase(row.stored) == 1) << row.stored;
    for (const std::string& option : row.options) EXPECT_TRUE(options.contains(option)) << option;
  }
  EXPECT_TRUE(without.empty());
}

TEST(PlanTable, TellsOnlyOptionsOfItsRows) {
  std::set<std::string> options;
  for (const PlanOption& row : TrainPlanTable()) options.insert(row.options.begin(), row.options.end());
  for (const char* stored : {kSecondPlan, kFullPlan}) {
    const nlohmann::ordered_json told = PlanAsOptions(DecodePlan(nlohmann::json::parse(stored), "x"));
    for (const auto& [name, value] : told.items()) EXPECT_TRUE(options.contains(name)) << name;
  }
}

// An option that only this test has: two members and a row.

struct NoisySettings : TrainSettings {
  std::optional<double> noise;
};

struct NoisyPlan : TrainPlan {
  double noise = 0.25;
};

PlanTable NoisyTable() {
  PlanTable table = TrainPlanTable();
  table.push_back({.stored = "noise_share",
                   .options = {"noise"},
                   .old_states = OldStates::AnyMayLackIt(0.0),
                   .value = Asked(&NoisySettings::noise, &NoisyPlan::noise),
                   .range = {[](double value) { return value >= 0 && value <= 1; }, "must lie in [0, 1]"}});
  return table;
}

NoisyPlan PlanWithNoise(std::optional<double> noise) {
  NoisySettings settings;
  settings.noise = noise;
  NoisyPlan plan;
  TakeAsked(settings, NoisyTable(), &plan);
  return plan;
}

TEST(NewRow, IsTakenFromTheCommandLineOrHasItsDefault) {
  EXPECT_EQ(PlanWithNoise(0.5).noise, 0.5);
  EXPECT_EQ(PlanWithNoise({}).noise, 0.25);
  EXPECT_EQ(MessageOf([] { PlanWithNoise(1.5); }), "--noise: 1.5 must lie in [0, 1] | ");
}

TEST(NewRow, IsStoredAndReadBack) {
  const nlohmann::ordered_json stored = EncodePlan(PlanWithNoise(0.1 + 0.2), NoisyTable());
  EXPECT_EQ(stored.at("noise_share"), 0.1 + 0.2);
  NoisyPlan read;
  DecodePlan(nlohmann::json::parse(stored.dump()), "x", NoisyTable(), &read);
  EXPECT_EQ(read.noise, 0.1 + 0.2);
  EXPECT_EQ(EncodePlan(read, NoisyTable()).dump(), stored.dump());
}

TEST(NewRow, HasTheValueThatOldStatesMean) {
  nlohmann::json first = nlohmann::json::parse(kFirstPlan);
  CompleteFirstPlan(&first, NoisyTable());
  for (const nlohmann::json& old : {first, nlohmann::json::parse(kSecondPlan)}) {
    NoisyPlan read;
    DecodePlan(old, "x", NoisyTable(), &read);
    EXPECT_EQ(read.noise, 0.0);
    EXPECT_EQ(EncodePlan(read, NoisyTable()).dump(), kSecondPlan);
  }
}

TEST(NewRow, IsComparedWithTheCommandLineOnResume) {
  NoisyPlan plan = PlanWithNoise(0.5);
  NoisySettings settings;
  EXPECT_TRUE(ReconcilePlan(settings, &plan, /*ranks=*/1, NoisyTable()).empty());
  settings.noise = 0.5;
  EXPECT_TRUE(ReconcilePlan(settings, &plan, /*ranks=*/1, NoisyTable()).empty());
  settings.noise = 0.75;
  EXPECT_EQ(
      MessageOf([&] { ReconcilePlan(settings, &plan, /*ranks=*/1, NoisyTable()); }),
      "--noise: 0.75 differs from the run's 0.5 | a resumed run continues its plan: leave out --noise, or "
      "start another run with --out");
}

TEST(NewRow, IsExplained) {
  const nlohmann::ordered_json values = PlanAsOptions(PlanWithNoise(0.5), NoisyTable());
  EXPECT_EQ(values.back(), 0.5) << "new options follow those of config.yaml";
  const auto explained = ExplainOptions({{.key = "noise", .group = "Loss"}}, values, {}, values);
  ASSERT_EQ(explained.size(), 1u);
  EXPECT_EQ(explained[0].value, "0.5");
  EXPECT_EQ(explained[0].origin, "checkpoint");
}

}  // namespace
}  // namespace trainwright
