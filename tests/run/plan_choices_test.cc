// What a plan makes of the objectives and optimizers that a program knows, shown with some that the library
// does not know.
#include "lib/run/plan_choices.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "lib/run/plan_codec.h"
#include "lib/run/resumed_plan.h"
#include "lib/run/run_planner.h"
#include "lib/spec/built_in_objectives.h"
#include "lib/spec/built_in_optimizers.h"
#include "lib/spec/llama_family.h"
#include "lib/spec/objective_names.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::MessageOf;

/// Of text alone.
PlanChoices OfText() {
  return {.objectives = {LmDescription(), SftDescription()}, .optimizers = BuiltInOptimizerDescriptions()};
}

/// With an objective for contrastive records and an optimizer, each with an option of its own.
PlanChoices WithOthers() {
  PlanChoices choices = OfText();
  choices.objectives.push_back({.name = "pairs",
                                .records = {{.kind = RecordKind::kContrastive}},
                                .takes = {"label_smoothing"},
                                .own = {{.name = "temperature", .initial = 0.5}}});
  choices.optimizers.push_back(
      {.name = "sign", .defaults = {.name = "sign", .own = {{"rank", 4}}}, .takes = {"beta1"}});
  return choices;
}

PlannedRun Plan(const TrainSettings& settings, const std::set<RecordKind>& records,
                const PlanChoices& choices = WithOthers()) {
  ModelConfig model;
  model.family = &LlamaFamily();
  model.hidden_size = 250;
  model.max_positions = 512;
  TrainSettings with_length = settings;
  with_length.steps = 5;
  return PlanRun(with_length, {.model = model, .records = records, .choices = choices});
}

TEST(PlanChoices, AutoTakesWhatTakesTheRecordsWithItsDefaults) {
  const PlannedRun planned = Plan({}, {RecordKind::kContrastive});
  EXPECT_EQ(planned.plan.objective, "pairs");
  EXPECT_EQ(planned.plan.objective_own, (OwnOptions{{"temperature", 0.5}}));
  EXPECT_EQ(planned.reasons.front().line(), "objective pairs: the shards hold contrastive records");
}

TEST(PlanChoices, SayInTheirOwnWordsWhyTheyAreTaken) {
  EXPECT_EQ(Plan({}, {RecordKind::kLm}).reasons.front().line(), ": the shards hold text (lm records)");
  EXPECT_EQ(Plan({}, {RecordKind::kSft}).reasons.front().line(),
            "objective sft: the shards hold conversations (sft records); only their answers are predicted");
}

TEST(PlanChoices, RecordsThatNobodyTakesAreRefused) {
  EXPECT_EQ(
      MessageOf([] { Plan({}, {RecordKind::kContrastive}, OfText()); }),
      "--data: holds contrastive records, of which no objective is made | make the stream with pretokenize "
      "--records lm or sft");
}

TEST(PlanChoices, RecordsOfAnObjectivesOwnAreRefusedByTheirNumber) {
  EXPECT_EQ(
      MessageOf([] { Plan({}, {RecordKind{200}}); }),
      "--data: holds kind-200 records, of which no objective is made | make the stream with pretokenize "
      "--records lm or sft or contrastive");
}

TEST(PlanChoices, RecordsThatTheChosenOneDoesNotTakeAreRefused) {
  const auto message = [](const char* objective, RecordKind records) {
    TrainSettings settings;
    settings.objective = objective;
    return MessageOf([&] { Plan(settings, {records}); });
  };
  EXPECT_EQ(
      message(kSftObjective, RecordKind::kLm),
      "--objective sft: the shards hold text (lm records), which does not say what is an answer | make the "
      "stream with pretokenize --records sft, or train with --objective lm");
  EXPECT_EQ(
      message("pairs", RecordKind::kSft),
      "--objective pairs: does not take the sft records of the data | train with --objective lm or sft");
}

TEST(PlanChoices, OptionsThatTheChosenOneDoesNotTakeAreRefused) {
  const auto message = [](const std::function<void(TrainSettings*)>& ask) {
    TrainSettings settings;
    ask(&settings);
    return MessageOf([&] { Plan(settings, {RecordKind::kContrastive}); });
  };
  EXPECT_EQ(message([](TrainSettings* s) { s->z_loss = 0.0; }),
            "--z-loss: has a meaning only with --objective lm or sft | ");
  EXPECT_EQ(message([](TrainSettings* s) { s->loss_on = "all"; }),
            "--loss-on: has a meaning only with --objective sft | ");
  EXPECT_EQ(message([](TrainSettings* s) { s->label_smoothing = 0.1; }), "");
  const auto of_sign = [&](const std::function<void(TrainSettings*)>& ask) {
    return message([&](TrainSettings* s) {
      s->optimizer = "sign";
      ask(s);
    });
  };
  EXPECT_EQ(of_sign([](TrainSettings* s) { s->optimizer_states = "bf16"; }),
            "--optimizer-states: has a meaning only with --optimizer adamw | ");
  EXPECT_EQ(of_sign([](TrainSettings* s) { s->beta1 = 0.5; }), "");
}

TEST(PlanChoices, WhatAnObjectiveDoesAnywayMayBeAskedFor) {
  TrainSettings settings;
  settings.loss_on = "all";
  EXPECT_EQ(Plan(settings, {RecordKind::kLm}).plan.objective, kLmObjective);
  settings.loss_on = "assistant";
  EXPECT_EQ(MessageOf([&] { Plan(settings, {RecordKind::kLm}); }),
            "--loss-on: has a meaning only with --objective sft | ");
}

TEST(PlanChoices, OptionsThatOnlyTheyHaveAreAskedForByName) {
  TrainSettings settings;
  settings.objective_options = {"temperature=0.07"};
  settings.optimizer = "sign";
  settings.optimizer_options = {"rank=8"};
  const TrainPlan plan = Plan(settings, {RecordKind::kContrastive}).plan;
  EXPECT_EQ(plan.objective_own.at("temperature"), 0.07);
  EXPECT_EQ(plan.optimizer.own.at("rank"), 8);
  settings.optimizer_options = {"width=8"};
  EXPECT_EQ(MessageOf([&] { Plan(settings, {RecordKind::kContrastive}); }),
            "the optimizer sign: has no option 'width' of its own | it has rank");
}

// As PyTorch's SGD refuses it.
TEST(PlanChoices, NesterovsMomentumNeedsAMomentum) {
  const auto message = [](const std::string& nesterov, double beta1) {
    TrainSettings settings;
    settings.optimizer = "sgd";
    settings.optimizer_options = {"nesterov=" + nesterov};
    settings.beta1 = beta1;
    return MessageOf([&] { Plan(settings, {RecordKind::kLm}); });
  };
  EXPECT_EQ(message("1", 0.9), "");
  EXPECT_EQ(message("0", 0), "");
  EXPECT_EQ(message("1", 0).rfind("--optimizer sgd: nesterov=1 needs a momentum", 0), 0u);
}

TEST(PlanChoices, OnlyWhatTheyTakeIsTold) {
  TrainSettings settings;
  settings.optimizer = "sign";
  const nlohmann::ordered_json told = PlanAsOptions(Plan(settings, {RecordKind::kContrastive}).plan);
  for (const char* option : {"z-loss", "loss-on", "beta2", "adam-eps", "weight-decay", "optimizer-states"}) {
    EXPECT_FALSE(told.contains(option)) << option;
  }
  EXPECT_TRUE(told.contains("label-smoothing"));
  EXPECT_TRUE(told.contains("beta1"));
  EXPECT_EQ(told.at("objective-option"), nlohmann::ordered_json({"temperature=0.5"}));
  EXPECT_EQ(told.at("optimizer-option"), nlohmann::ordered_json({"rank=4"}));
}

TEST(PlanChoices, APlanThatWasStoredWithoutAnOptionHasItsDefault) {
  TrainPlan plan = Plan({}, {RecordKind::kContrastive}).plan;
  plan.objective_own.clear();
  TrainPlan read = DecodePlan(nlohmann::json::parse(EncodePlan(plan).dump()), "x");
  CompleteStoredPlan(WithOthers(), &read);
  EXPECT_EQ(read.objective_own, (OwnOptions{{"temperature", 0.5}}));
  EXPECT_TRUE(read.Takes("label_smoothing"));
  EXPECT_FALSE(read.Takes("z_loss"));
}

TEST(PlanChoices, APlanThatWasStoredWithAnUnknownOptionIsRefused) {
  TrainPlan plan = Plan({}, {RecordKind::kContrastive}).plan;
  plan.objective_own["margin"] = 1;
  EXPECT_EQ(CodeOf([&] { CompleteStoredPlan(WithOthers(), &plan); }), ErrorCode::kBadInput);
}

TEST(PlanChoices, OptionsThatOnlyTheyHaveAreComparedOnResume) {
  TrainPlan plan = Plan({}, {RecordKind::kContrastive}).plan;
  TrainSettings settings;
  settings.objective_options = {"temperature=0.5"};
  EXPECT_TRUE(ReconcilePlan(settings, &plan).empty());
  settings.objective_options = {"temperature=0.7"};
  EXPECT_EQ(
      MessageOf([&] { ReconcilePlan(settings, &plan); }),
      "--objective-option: temperature=0.7 differs from the run's temperature=0.5 | a resumed run continues "
      "its plan: leave out --objective-option, or start another run with --out");
}

/// Of contrastive records, and of text beside them, whose texts are as long as an option of its own says.
PlanChoices WithTexts() {
  PlanChoices choices = OfText();
  choices.objectives.push_back(
      {.name = "texts",
       .records = {{.kind = RecordKind::kContrastive}, {.kind = RecordKind::kLm, .chosen = false}},
       .own = {{.name = "text_len", .initial = 32, .help = "tokens"},
               {.name = "mode", .initial = "pooled", .help = "what is trained"},
               {.name = "doubled", .initial = 0}},
       .own_of_data =
           [](const std::set<RecordKind>& kinds) {
             return OwnOptions{{"mode", kinds.size() > 1 ? "both" : "pooled"}};
           },
       .own_of_step =
           [](const OwnOptions&, const StepSizes& step) {
             return OwnOptions{{"doubled", 2 * step.batch}};
           },
       .sample_tokens =
           [](const OwnOptions& own) {
             const auto length = static_cast<int64_t>(own.at("text_len").number());
             return SampleTokens{.longest_span = length, .sample = 4 * length};
           },
       .sample_flags = "--text-len",
       .problem =
           [](const OwnOptions& own, const StepSizes& step) {
             return own.at("text_len") == 7 && step.batch == 3 ? "7 texts of 3" : "";
           },
       .mixes = true,
       .drops_last = true});
  return choices;
}

PlannedRun PlanTexts(const TrainSettings& settings, const std::set<RecordKind>& records) {
  return Plan(settings, records, WithTexts());
}

const std::set<RecordKind> kTexts = {RecordKind::kContrastive},
                           kBoth = {RecordKind::kLm, RecordKind::kContrastive};

TEST(PlanChoices, AMixtureOfRecordsIsForAnObjectiveThatTakesAllOfThem) {
  const PlannedRun planned = PlanTexts({}, kBoth);
  EXPECT_EQ(planned.plan.objective, "texts");
  EXPECT_EQ(planned.plan.objective_own.at("mode"), "both");
  EXPECT_EQ(planned.reasons.front().text, "the shards hold lm and contrastive records");
  TrainSettings settings;
  settings.objective = kLmObjective;
  EXPECT_EQ(
      MessageOf([&] { PlanTexts(settings, kBoth); }),
      "--objective lm: does not take the lm and contrastive records of the data | train with --objective "
      "texts");
}

TEST(PlanChoices, UnlikeSetsAreToldBeforeAnObjectiveIsTakenThatDoesNotMixThem) {
  const auto code = [](const std::set<RecordKind>& records) {
    ModelConfig model;
    model.family = &LlamaFamily();
    model.hidden_size = 250;
    model.max_positions = 512;
    TrainSettings settings;
    settings.steps = 5;
    return MessageOf([&] {
      PlanRun(settings, {.model = model,
                         .records = records,
                         .require_alike = [] { throw Error(ErrorCode::kBadInput, "b", "unlike a"); },
                         .choices = WithTexts()});
    });
  };
  EXPECT_EQ(code({RecordKind::kLm, RecordKind::kSft}), "b: unlike a | ");
  EXPECT_EQ(code({RecordKind::kLm}), "b: unlike a | ") << "chunks of unlike lengths";
  EXPECT_EQ(code(kBoth), "");
}

TEST(PlanChoices, AutoDoesNotTakeForTextAloneWhatTakesItBesideOthers) {
  EXPECT_EQ(PlanTexts({}, {RecordKind::kLm}).plan.objective, kLmObjective);
  TrainSettings settings;
  settings.objective = "texts";
  EXPECT_EQ(PlanTexts(settings, {RecordKind::kLm}).plan.objective, "texts");
}

TEST(PlanChoices, WhatTheUserSaysGoesBeforeWhatTheDataDecides) {
  TrainSettings settings;
  settings.objective_options = {"mode=pooled"};
  EXPECT_EQ(PlanTexts(settings, kBoth).plan.objective_own.at("mode"), "pooled");
}

TEST(PlanChoices, TextsAreAsLongAsTheirOwnOptionSays) {
  TrainSettings settings;
  settings.objective_options = {"text_len=16"};
  const TrainPlan plan = PlanTexts(settings, kTexts).plan;
  EXPECT_EQ(plan.sequence_tokens, 16);
  EXPECT_EQ(plan.batch, 2048 / (4 * 16));
  EXPECT_EQ(plan.objective_own.at("doubled"), 2 * plan.batch);
  EXPECT_TRUE(plan.drop_last);
  settings.objective_options = {"text_len=513"};
  EXPECT_EQ(MessageOf([&] { PlanTexts(settings, kTexts); }),
            "--text-len: 513 tokens are more than the 512 positions of the model | ");
  settings.seq = 16;
  EXPECT_EQ(MessageOf([&] { PlanTexts(settings, kTexts); }),
            "--seq: has no meaning with --objective texts | --text-len say how long its texts are");
}

TEST(PlanChoices, OwnOptionsThatDoNotSuitTheStepAreRefused) {
  TrainSettings settings;
  settings.objective_options = {"text_len=7"};
  EXPECT_EQ(MessageOf([&] { PlanTexts(settings, kTexts); }), "");
  settings.batch = 3;
  EXPECT_EQ(MessageOf([&] { PlanTexts(settings, kTexts); }), "--objective texts: 7 texts of 3 | ");
}

TEST(PlanChoices, AFlagOfAnotherObjectiveIsRefusedByItsName) {
  TrainSettings settings;
  settings.objective_options = {"text_len=16"};
  EXPECT_EQ(MessageOf([&] { PlanTexts(settings, {RecordKind::kLm}); }),
            "--text-len: has a meaning only with --objective texts | ");
  EXPECT_EQ(CodeOf([&] { PlanTexts(settings, {RecordKind::kLm}); }), ErrorCode::kUsage);
  settings.objective_options = {"doubled=2"};
  EXPECT_EQ(MessageOf([&] { PlanTexts(settings, {RecordKind::kLm}); }),
            "the objective lm: has no option 'doubled' of its own | it has none");
}

/// Of the objective of this library that has options of its own.
TrainPlan GritPlan(const std::vector<std::string>& asked) {
  TrainSettings settings;
  settings.objective_options = asked;
  return Plan(settings, {RecordKind::kContrastive}, BuiltInChoices()).plan;
}

TEST(PlanChoices, OwnOptionsOfThisLibrarysObjectivesAreToldByTheirFlags) {
  const TrainPlan plan = GritPlan({"temperature=0.05", "group_size=4", "matryoshka=64,128"});
  const nlohmann::ordered_json told = PlanAsOptions(plan);
  EXPECT_EQ(told.at("objective"), "grit");
  EXPECT_EQ(told.at("temperature"), 0.05);
  EXPECT_EQ(told.at("group-size").dump(), "4");
  EXPECT_EQ(told.at("matryoshka"), "64,128");
  EXPECT_EQ(told.at("mode"), "embedding");
  EXPECT_FALSE(told.contains("num-samples")) << "an empty text cannot be given";
  EXPECT_FALSE(told.contains("seq")) << "cannot be asked for";
  EXPECT_EQ(told.at("objective-option"), nlohmann::ordered_json({"companion_every=1"}));
}

TEST(PlanChoices, APlanOfThisLibrarysObjectiveIsReadAsItWasStored) {
  const TrainPlan plan = GritPlan({"temperature=0.05", "pooling=cls", "positives=3"});
  TrainPlan read = DecodePlan(nlohmann::json::parse(EncodePlan(plan).dump()), "x");
  CompleteStoredPlan(BuiltInChoices(), &read);
  EXPECT_EQ(read.objective_own, plan.objective_own);
}

TEST(PlanChoices, OwnOptionsOfThisLibrarysObjectivesAreComparedByTheirFlagsOnResume) {
  TrainPlan plan = GritPlan({"positives=3"});
  TrainSettings settings;
  settings.objective_options = {"positives=3", "temperature=0.02"};
  EXPECT_EQ(MessageOf([&] { ReconcilePlan(settings, &plan); }), "");
  settings.objective_options = {"temperature=0.7"};
  EXPECT_EQ(
      MessageOf([&] { ReconcilePlan(settings, &plan); }),
      "--temperature: temperature=0.7 differs from the run's temperature=0.02 | a resumed run continues "
      "its plan: leave out --temperature, or start another run with --out");
}

TEST(PlanChoices, OnResumeADivisionThatTheObjectiveDoesNotTakeIsRefused) {
  TrainPlan plan = GritPlan({});
  TrainSettings settings;
  settings.max_tokens_per_batch = 64;
  EXPECT_EQ(MessageOf([&] { ReconcilePlan(settings, &plan); }),
            "--max-tokens-per-batch: is not taken by the run's objective grit | leave out "
            "--max-tokens-per-batch");
  TrainPlan text;
  EXPECT_EQ(MessageOf([&] { ReconcilePlan(settings, &text); }), "");
  EXPECT_EQ(text.max_batch_tokens, 64);
}

TEST(PlanChoices, OnResumeAnotherLimitOfTokensIsToldAsAnotherOrderOfTheSameSums) {
  TrainPlan plan;
  plan.max_batch_tokens = 64;
  TrainSettings settings;
  const std::string order = ": the same sums in another order, so results differ by rounding";
  EXPECT_EQ(ReconcilePlan(settings, &plan), std::vector<std::string>());
  settings.max_tokens_per_batch = 64;
  EXPECT_EQ(ReconcilePlan(settings, &plan), std::vector<std::string>());
  settings.max_tokens_per_batch = 32;
  EXPECT_EQ(ReconcilePlan(settings, &plan),
            std::vector<std::string>{
                "micro-batches of at most 32 tokens instead of the run's of at most 64 tokens" + order});
  EXPECT_EQ(plan.max_batch_tokens, 32);
  settings.max_tokens_per_batch = 0;
  EXPECT_EQ(ReconcilePlan(settings, &plan),
            std::vector<std::string>{
                "micro-batches without a limit of tokens instead of the run's of at most 32 tokens" + order});
  EXPECT_EQ(plan.max_batch_tokens, 0);
}

TEST(PlanChoices, AResumedRunMayComputeItsStepOtherwiseAndSaysSo) {
  TrainPlan plan = GritPlan({});
  TrainSettings settings;
  settings.objective_options = {"split_emb=full", "tile_mb=8", "no_emb_gas=off"};
  const std::string order = ": the same sums in another order, so results differ by rounding";
  EXPECT_EQ(ReconcilePlan(settings, &plan),
            (std::vector<std::string>{"--split-emb full instead of the run's no" + order,
                                      "--tile-mb 8 instead of the run's 32" + order}));
  EXPECT_EQ(plan.objective_own.at("split_emb"), "full");
  EXPECT_EQ(plan.objective_own.at("tile_mb"), 8);
  EXPECT_TRUE(ReconcilePlan(settings, &plan).empty());
  settings.objective_options = {"tile_mb=0"};
  EXPECT_EQ(MessageOf([&] { ReconcilePlan(settings, &plan); }).rfind("--tile-mb: cannot be '0'", 0), 0u);
}

// Whether it says the same as the run's own, the run's samples tell.
TEST(PlanChoices, AFileOfAnOwnOptionMayBeNamedOtherwiseOnResume) {
  const TrainPlan plan = GritPlan({"num_samples=counts.json"});
  const auto resumed = [&](const std::string& path) {
    TrainPlan own = plan;
    TrainSettings settings;
    settings.objective_options = {"num_samples=" + path};
    TakeOwnFiles(settings, &own);
    ReconcilePlan(settings, &own);
    return own.objective_own.at("num_samples").text();
  };
  EXPECT_EQ(resumed("counts.json"), "counts.json");
  EXPECT_EQ(resumed("./counts.json"), "counts.json") << "relative to where the run began, as it was";
  EXPECT_EQ(resumed("/data/007"), "/data/007");
  EXPECT_EQ(resumed(""), "");
  EXPECT_EQ(resumed("other.json"), (std::filesystem::current_path() / "other.json").string());
}

TEST(PlanChoices, AFileMayHaveTheNameOfANumber) {
  EXPECT_EQ(GritPlan({"num_samples=007"}).objective_own.at("num_samples"), "007");
  EXPECT_EQ(PlanAsOptions(GritPlan({"num_samples=1e3"})).at("num-samples"), "1e3");
}

/// The values that an option of train takes, as the frozen command line has them; a test holds that to the
/// program.
std::vector<std::string> ChoicesOf(const std::string& option_name) {
  const std::string frozen = test::ReadFile(std::string(TRAINWRIGHT_SOURCE_DIR) + "/tests/cli/cli.json");
  for (const nlohmann::json& tool : nlohmann::json::parse(frozen)) {
    if (tool.at("tool") != "train") continue;
    for (const nlohmann::json& option : tool.at("options")) {
      if (option.value("key", "") == option_name) return option.at("choices");
    }
  }
  return {};
}

TEST(PlanChoices, OfThisLibraryAreThoseThatTheCommandLineTakes) {
  std::vector<std::string> objectives = {"auto"}, optimizers;
  for (const ObjectiveDescription& objective : BuiltInChoices().objectives)
    objectives.push_back(objective.name);
  for (const OptimizerDescription& optimizer : BuiltInChoices().optimizers)
    optimizers.push_back(optimizer.name);
  EXPECT_EQ(ChoicesOf("objective"), objectives);
  EXPECT_EQ(ChoicesOf("optimizer"), optimizers);
}

}  // namespace
}  // namespace trainwright
