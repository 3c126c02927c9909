#include "lib/bench/plan_file.h"

#include <gtest/gtest.h>

#include "lib/base/error.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

class PlanFileTest : public testing::Test {
 protected:
  PlanFile Read(const std::string& text) {
    test::WriteFile(folder_.path("plan.yaml"), text);
    return ReadPlanFile(folder_.path("plan.yaml"));
  }
  std::string Refusal(const std::string& text) {
    return test::MessageOf([&] { Read(text); });
  }
  test::TemporaryFolder folder_;
};

constexpr char kLevers[] =
    "base: train {levers} --out {dir}/run\nprepare: sync\nmetric-file: \"{dir}/run/metrics.jsonl\"\n"
    "metrics: [step_time_s, \"final:loss_nats\"]\nmetric-skip: 2\n"
    "levers:\n  - {name: bf16, add: --mixed-precision bf16}\n  - {name: batch, add: --batch 8}\n";

TEST_F(PlanFileTest, StagesHaveTheirCommands) {
  const PlanFile plan = Read(
      "stages:\n  - name: one\n    before: a\n    after: b\n    prepare: p\n  - {name: two, before: c, "
      "after: d}\n");
  ASSERT_EQ(plan.stages.size(), 2u);
  EXPECT_EQ(plan.stages[0].before.command, "a");
  EXPECT_EQ(plan.stages[0].after.prepare, "p");
  EXPECT_EQ(plan.stages[1].after.command, "d");
}

TEST_F(PlanFileTest, LeversAreAddedAloneOrOnTopOfEachOther) {
  const PlanFile plan = Read(kLevers);
  EXPECT_EQ(plan.metrics.names, (std::vector<std::string>{"step_time_s", "final:loss_nats"}));
  EXPECT_EQ(plan.metrics.skip, 2);
  const auto alone = AblationVariants(plan, AblationMode::kOneAtATime);
  ASSERT_EQ(alone.size(), 3u);
  EXPECT_EQ(alone[0].command, "train  --out {dir}/run");
  EXPECT_EQ(alone[2].command, "train --batch 8 --out {dir}/run");
  EXPECT_EQ(alone[2].prepare, "sync");
  EXPECT_EQ(AblationVariants(plan, AblationMode::kCumulative)[2].command,
            "train --mixed-precision bf16 --batch 8 --out {dir}/run");
}

TEST_F(PlanFileTest, LeversStandInEveryPlaceThatIsMarked) {
  const PlanFile plan = Read("base: echo {levers}; train {levers}\nlevers: [{name: a, add: --a}]\n");
  const auto variants = AblationVariants(plan, AblationMode::kOneAtATime);
  EXPECT_EQ(variants[0].command, "echo ; train ");
  EXPECT_EQ(variants[1].command, "echo --a; train --a");
}

TEST_F(PlanFileTest, FieldsThatWouldCountForNothingAreRefused) {
  const std::string stages = "stages: [{name: a, before: b, after: c}]\n";
  EXPECT_NE(Refusal(stages + "prepare: sync\n").find("'prepare'"), std::string::npos);
  EXPECT_NE(Refusal(stages + "levers: [{name: a, add: b}]\n").find("'levers'"), std::string::npos);
  const std::string base = "base: train {levers}\nlevers:\n  - {name: a, add: b}\n";
  EXPECT_NE(Refusal(base + "  - {name: a, add: c}\n").find("two variants 'a'"), std::string::npos);
  EXPECT_NE(Refusal(base + "  - {name: base, add: c}\n").find("two variants 'base'"), std::string::npos);
}

TEST_F(PlanFileTest, AFieldThatIsThereTwiceIsRefused) {
  const std::string first = "stages: [{name: a, before: b, after: c}]\n";
  const std::string stages = Refusal(first + "stages: [{name: d, before: e, after: f}]\n");
  EXPECT_NE(stages.find("'stages' twice (line 2)"), std::string::npos) << stages;
  for (const char* text :
       {"stages:\n  - {name: a, before: b, after: c, after: d}\n",
        "base: train {levers}\nlevers:\n  - {name: a, add: b, add: c}\n",
        "base: train {levers}\nmetrics: [a]\nmetrics: [b]\nlevers: [{name: a, add: b}]\n"}) {
    EXPECT_NE(Refusal(text).find("twice"), std::string::npos) << text;
  }
}

TEST_F(PlanFileTest, ASweepIsALeverForEachOfItsValues) {
  const PlanFile plan = Read(
      "base: train {levers}\nlevers:\n  - {name: bf16, add: --bf16}\n"
      "  - {name: lr, add: \"--lr {value} --name lr-{value}\", values: [1e-4, 3e-4]}\n");
  ASSERT_EQ(plan.levers.size(), 3u);
  EXPECT_EQ(plan.levers[0].add, "--bf16");
  EXPECT_EQ(plan.levers[1].name, "lr 1e-4");
  EXPECT_EQ(plan.levers[1].add, "--lr 1e-4 --name lr-1e-4");
  EXPECT_EQ(plan.levers[2].name, "lr 3e-4");
  const auto alone = AblationVariants(plan, AblationMode::kOneAtATime);
  EXPECT_EQ(alone[3].command, "train --lr 3e-4 --name lr-3e-4");
  EXPECT_THROW(AblationVariants(plan, AblationMode::kCumulative), Error);
  for (const char* lever :
       {"{name: a, add: b, values: [1]}", "{name: a, add: \"{value}\"}",
        "{name: a, add: \"{value}\", values: 3}", "{name: a, add: \"{value}\", values: [1, 1]}",
        "{name: a, add: \"{value}\", values: [[1]]}"}) {
    EXPECT_NE(Refusal(std::string("base: train {levers}\nlevers:\n  - ") + lever + "\n").find("line 3"),
              std::string::npos)
        << lever;
  }
}

TEST_F(PlanFileTest, MistakesAreNamedWithTheirLine) {
  EXPECT_NE(Refusal("stages:\n  - name: one\n    befor: a\n    after: b\n").find("'befor'"),
            std::string::npos);
  EXPECT_NE(Refusal("stages:\n  - name: one\n    befor: a\n    after: b\n").find("line 3"),
            std::string::npos);
  EXPECT_NE(Refusal("stages:\n  - {name: one, after: b}\n").find("lacks the field 'before'"),
            std::string::npos);
  EXPECT_NE(Refusal("base: train\nlevers: [{name: a, add: b}]\n").find("{levers}"), std::string::npos);
  EXPECT_NE(Refusal("base: train {levers}\n").find("levers"), std::string::npos);
  EXPECT_NE(Refusal("stages: 3\n").find("must be a list"), std::string::npos);
  EXPECT_NE(Refusal("a: [1\n").find("no YAML"), std::string::npos);
  EXPECT_NE(Refusal(std::string(kLevers) + "---\nbase: other\n").find("second document"), std::string::npos);
  EXPECT_NE(Refusal("").find("must be a mapping"), std::string::npos);
  EXPECT_NE(Refusal("- 1\n").find("must be a mapping"), std::string::npos);
  EXPECT_NE(
      Refusal("stages: [{name: a, before: b, after: c}, {name: a, before: b, after: c}]").find("two stages"),
      std::string::npos);
}

}  // namespace
}  // namespace trainwright
