// The plan of a run that goes on with an adapter.
#include <gtest/gtest.h>

#include <string>

#include "lib/run/resumed_plan.h"
#include "lib/run/run_planner.h"
#include "lib/spec/built_in_families.h"
#include "lib/spec/lora_options.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

constexpr char kAllModules[] = "down_proj,gate_proj,k_proj,o_proj,q_proj,up_proj,v_proj";

/// The targets in the plan of a run of --lora-targets on an adapter.
std::string PlannedTargets(const std::string& of_adapter, const std::string& asked) {
  TrainSettings settings;
  settings.steps = 5;
  settings.adapter = "run";
  settings.lora_targets = asked;
  PlanFacts facts;
  facts.model = BuiltInDescriptions().PresetConfig("llama-1m", 300);
  facts.adapter = LoraOptions{.rank = 4, .alpha = 8};
  facts.adapter->targets = of_adapter;
  return PlanRun(settings, facts).plan.tuning.lora->targets;
}

TEST(AdapterPlan, TargetsAreTheSameInWhateverWayTheyAreSpelt) {
  EXPECT_EQ(PlannedTargets(kAllModules, "all-linear"), "all-linear");
  EXPECT_EQ(PlannedTargets(kAllModules, "attention,mlp"), "attention,mlp");
  EXPECT_EQ(PlannedTargets("q_proj,v_proj", "self_attn.v_proj,self_attn.q_proj"),
            "self_attn.v_proj,self_attn.q_proj");
  EXPECT_EQ(PlannedTargets("all-linear", kAllModules), kAllModules);
  EXPECT_EQ(PlannedTargets("q_proj,v_proj", ""), "q_proj,v_proj");
}

TEST(AdapterPlan, OtherTargetsThanTheAdaptersAreRefused) {
  const std::string problem =
      "--lora-targets: differs from that of the adapter run | leave out --lora-targets";
  EXPECT_EQ(test::MessageOf([] { PlannedTargets("q_proj,v_proj", "all-linear"); }), problem);
  EXPECT_EQ(test::MessageOf([] { PlannedTargets(kAllModules, "attention"); }), problem);
}

/// What a run that goes on says of --lora-targets; empty: it takes them.
std::string SaidOnResume(const std::string& of_run, const std::string& asked) {
  TrainSettings settings;
  settings.lora_targets = asked;
  TrainPlan plan;
  plan.tuning.lora = LoraOptions{.rank = 4, .alpha = 8};
  plan.tuning.lora->targets = of_run;
  const ModelConfig model = BuiltInDescriptions().PresetConfig("llama-1m", 300);
  return test::MessageOf([&] { ReconcilePlan(InWordsOfPlan(settings, plan, model), &plan); });
}

TEST(AdapterPlan, ARunGoesOnWithItsModulesInOtherWords) {
  EXPECT_EQ(SaidOnResume("all-linear", kAllModules), "");
  EXPECT_EQ(SaidOnResume(kAllModules, "mlp,attention"), "");
  EXPECT_EQ(SaidOnResume("q_proj,v_proj", "self_attn.v_proj,q_proj"), "");
}

TEST(AdapterPlan, ARunRefusesToGoOnWithOtherModules) {
  EXPECT_EQ(SaidOnResume("all-linear", "attention").rfind("--lora-targets: attention differs", 0), 0u);
  EXPECT_EQ(SaidOnResume("q_proj", "query").rfind("--lora-targets: no module of the model", 0), 0u);
}

}  // namespace
}  // namespace trainwright
