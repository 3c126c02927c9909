// What is said of the objective grit before one is made: its options, and what follows from them.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "lib/spec/built_in_objectives.h"
#include "lib/spec/llama_family.h"
#include "lib/spec/ten_family.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;

OwnOptions Options(const OwnOptions& said) {
  return WithDescribed(said, GritDescription().own, ErrorCode::kUsage, "the objective grit");
}

/// Options of a run that begins with such steps.
OwnOptions OptionsOfStep(const OwnOptions& said, const StepSizes& step) {
  OwnOptions own = Options(said);
  for (const auto& [name, value] : GritDescription().own_of_step(own, step)) own[name] = value;
  return own;
}

/// Of options in a step that would suit the defaults.
std::string ProblemOf(const OwnOptions& said, const StepSizes& step = {.batch = 8, .step_samples = 32}) {
  return GritDescription().problem(OptionsOfStep(said, step), step);
}

TEST(GritDescription, HasTheDefaultsOfTheSpecification) {
  const OwnOptions own = Options({});
  EXPECT_EQ(own.at("temperature"), 0.02);
  EXPECT_EQ(own.at("group_size"), 2);
  EXPECT_EQ(own.at("query_max_len"), 32);
  EXPECT_EQ(own.at("passage_max_len"), 128);
  EXPECT_EQ(own.at("max_records"), 1e8);
  EXPECT_EQ(own.at("gen_loss_factor"), 1);
  const std::pair<const char*, const char*> texts[] = {
      {"mode", "embedding"},     {"pooling", "mean"},   {"attn", "bbcc"},     {"normalize", "on"},
      {"negatives", "step"},     {"gen_loss", "mixed"}, {"gen_mean", "step"}, {"emb_grad_scale", "world"},
      {"round_vectors", "off"},  {"prefixlm", "off"},   {"symmetric", "off"}, {"emb_sides", "both"},
      {"unique_indices", "off"}, {"split_emb", "no"},   {"positives", "one"}, {"mask_false_negatives", "no"},
      {"no_emb_gas", "off"},     {"no_gen_gas", "off"}};
  for (const auto& [name, text] : texts) EXPECT_EQ(own.at(name), text) << name;
}

TEST(GritDescription, EveryOptionButWhatFollowsFromOthersHasAFlag) {
  std::set<std::string> without;
  for (const OwnOption& option : GritDescription().own) {
    if (!option.has_flag()) without.insert(option.name);
  }
  EXPECT_EQ(without, std::set<std::string>{"companion_every"});
}

TEST(GritDescription, TheRecordsDecideTheMode) {
  const auto mode = [](const std::set<RecordKind>& kinds) {
    return GritDescription().own_of_data(kinds).at("mode");
  };
  EXPECT_EQ(mode({RecordKind::kContrastive}), "embedding");
  EXPECT_EQ(mode({RecordKind::kContrastive, RecordKind::kLm}), "unified");
  EXPECT_EQ(mode({RecordKind::kContrastive, RecordKind::kSft, RecordKind::kLm}), "unified");
  EXPECT_EQ(mode({RecordKind::kSft}), "generative");
}

TEST(GritDescription, TheLengthsOfTextsSayHowLongASampleIs) {
  const auto tokens = [](const OwnOptions& said) { return GritDescription().sample_tokens(Options(said)); };
  const OwnOptions lengths = {
      {"query_max_len", 10}, {"passage_max_len", 20}, {"generative_max_len", 300}, {"group_size", 4}};
  const auto with = [&](const OwnOptions& more) {
    OwnOptions all = lengths;
    for (const auto& [name, value] : more) all[name] = value;
    return tokens(all);
  };
  EXPECT_EQ(with({}).longest_span, 20);
  EXPECT_EQ(with({}).sample, 10 + 4 * 20);
  EXPECT_EQ(with({{"positives", 3}}).sample, 10 + (3 + 3) * 20);
  EXPECT_EQ(with({{"mode", "unified"}}).longest_span, 300);
  EXPECT_EQ(with({{"mode", "unified"}}).sample, 10 + 4 * 20 + 300);
  EXPECT_EQ(with({{"mode", "generative"}}).longest_span, 300);
  EXPECT_EQ(with({{"mode", "generative"}}).sample, 300);
  EXPECT_EQ(with({{"mode", "generative"}, {"generative_max_len", 0}}).sample, 20);
}

TEST(GritDescription, TheGenerativeBatchSaysWhichSamplesHaveARow) {
  const auto every = [](int gen_batch, int64_t batch) {
    return GritDescription()
        .own_of_step(Options({{"gen_batch", gen_batch}}), {.batch = batch})
        .at("companion_every");
  };
  EXPECT_EQ(every(0, 8), 1);
  EXPECT_EQ(every(8, 8), 1);
  EXPECT_EQ(every(2, 8), 4);
}

TEST(GritDescription, TakesValuesThatGoTogether) {
  EXPECT_EQ(ProblemOf({}), "");
  EXPECT_EQ(ProblemOf({{"attn", "cc"}}), "");
  EXPECT_EQ(ProblemOf({{"matryoshka", "64,128"}, {"matryoshka_weights", "1,0.5"}}), "");
  EXPECT_EQ(ProblemOf({{"matryoshka", 64}}), "");
  EXPECT_EQ(ProblemOf({{"positives", "all"}}), "");
  EXPECT_EQ(ProblemOf({{"gen_batch", 4}, {"mode", "unified"}}), "");
  EXPECT_EQ(ProblemOf({{"group_size", 1}}), "");
  EXPECT_EQ(ProblemOf({{"group_size", 1}, {"mode", "generative"}}, {}), "");
}

TEST(GritDescription, TellsWhatDoesNotGoTogether) {
  const std::pair<OwnOptions, const char*> cases[] = {
      {{{"attn", "bb"}, {"mode", "unified"}}, "--attn bb"},
      {{{"matryoshka", "64,64"}}, "--matryoshka takes"},
      {{{"matryoshka", "64,32"}}, "--matryoshka takes"},
      {{{"matryoshka", "64,"}}, "--matryoshka takes"},
      {{{"matryoshka", "0.5"}}, "--matryoshka takes"},
      {{{"matryoshka", "wide"}}, "--matryoshka takes"},
      {{{"matryoshka", "64,128"}, {"matryoshka_weights", "1"}}, "--matryoshka-weights takes as many"},
      {{{"matryoshka", "64"}, {"matryoshka_weights", "-1"}}, "--matryoshka-weights takes numbers"},
      {{{"positives", "some"}}, "--positives takes"},
      {{{"positives", 0}}, "--positives takes"},
      {{{"gen_loss_factor", 0}}, "--gen-loss-factor"},
      {{{"gen_batch", 3}}, "--gen-batch 3 does not divide --batch 8"}};
  for (const auto& [said, problem] : cases) {
    EXPECT_EQ(ProblemOf(said).substr(0, std::string(problem).size()), problem);
  }
}

TEST(GritDescription, ARunGoesOnWithSmallerMicroBatchesThanItsGenerativeBatch) {
  const OwnOptions own =
      OptionsOfStep({{"gen_batch", 4}, {"mode", "unified"}}, {.batch = 8, .step_samples = 32});
  EXPECT_EQ(GritDescription().problem(own, {.batch = 2, .step_samples = 32}), "");
}

TEST(GritDescription, TemperaturesThatNoLossHasAreRefused) {
  for (const char* temperature : {"0", "-1", "1e-5", "nan", "inf", "warm"}) {
    EXPECT_EQ(CodeOf([&] {
                Options(ParseOwnOptions({std::string("temperature=") + temperature}, "--objective-option",
                                        OwnTexts::kTaken));
              }),
              ErrorCode::kUsage)
        << temperature;
  }
}

TEST(GritDescription, AQueryNeedsANegative) {
  const auto problem = [](const OwnOptions& said, const StepSizes& step) { return ProblemOf(said, step); };
  EXPECT_NE(problem({{"group_size", 1}}, {.batch = 1, .step_samples = 1}), "");
  EXPECT_EQ(problem({{"group_size", 1}}, {.batch = 1, .step_samples = 2}), "");
  EXPECT_EQ(problem({}, {.batch = 1, .step_samples = 1}), "");
  EXPECT_NE(problem({{"group_size", 1}, {"negatives", "micro-batch"}}, {.batch = 1, .step_samples = 8}), "");
  const StepSizes one_each = {.batch = 1, .step_samples = 4, .ranks = 4};
  EXPECT_NE(problem({{"group_size", 1}, {"negatives", "rank"}}, one_each), "");
  EXPECT_EQ(problem({{"group_size", 1}}, one_each), "");
}

TEST(GritDescription, AFirstTokenThatSeesNothingElseIsNotPooled) {
  const auto problem = [](const OwnOptions& said, const FamilyDescription& family) {
    return GritDescription().problem_of_model(Options(said), family, /*hidden_size=*/64);
  };
  for (const FamilyDescription* family : {&LlamaFamily(), &TenFamily()}) {
    for (const char* attention : {"cccc", "cc"}) {
      const std::string found = problem({{"pooling", "cls"}, {"attn", attention}}, *family);
      EXPECT_NE(found.find("--pooling cls"), std::string::npos) << found;
      EXPECT_EQ(problem({{"pooling", "lasttoken"}, {"attn", attention}}, *family), "");
      EXPECT_EQ(problem({{"pooling", "cls"}, {"attn", attention}, {"mode", "generative"}}, *family), "");
    }
  }
  for (const char* attention : {"bbcc", "bb"}) {
    EXPECT_EQ(problem({{"pooling", "cls"}, {"attn", attention}}, LlamaFamily()), "");
  }
}

TEST(GritDescription, SizesOfMatryoshkaAreNoLargerThanTheVectors) {
  const auto problem = [](const OwnOptions& said) {
    return GritDescription().problem_of_model(Options(said), LlamaFamily(), /*hidden_size=*/64);
  };
  EXPECT_EQ(problem({{"matryoshka", "8,64"}}), "");
  EXPECT_NE(problem({{"matryoshka", "8,65"}}).find("65 elements of vectors that have 64"), std::string::npos);
  EXPECT_EQ(problem({{"matryoshka", "8,65"}, {"projection", 128}}), "");
  EXPECT_NE(problem({{"matryoshka", "8,64"}, {"projection", 16}}).find("that have 16"), std::string::npos);
  EXPECT_EQ(problem({{"matryoshka", "8,65"}, {"mode", "generative"}}), "");
}

TEST(GritDescription, WhatDependsOnRanksIsRefusedUnderExactLeaves) {
  const StepSizes exact = {.batch = 8, .step_samples = 32, .exact_world = 4};
  EXPECT_EQ(ProblemOf({}, exact), "");
  EXPECT_NE(ProblemOf({{"negatives", "rank"}}, exact), "");
  EXPECT_NE(ProblemOf({{"emb_grad_scale", "upstream"}}, exact), "");
  EXPECT_EQ(ProblemOf({{"negatives", "rank"}}), "");
}

TEST(GritDescription, MeansOfMicroBatchesAreRefusedWhereTheseMayBeHalved) {
  const OwnOptions said = {{"mode", "unified"}, {"gen_mean", "micro-batch"}};
  EXPECT_EQ(ProblemOf(said), "");
  EXPECT_NE(ProblemOf(said, {.batch = 8, .step_samples = 32, .auto_oom = true}), "");
}

TEST(GritDescription, WhatIsSaidOfMicroBatchesIsRefusedWhereThereIsOne) {
  EXPECT_NE(ProblemOf({{"mode", "unified"}, {"gen_mean", "micro-batch"}, {"no_gen_gas", "on"}}), "");
  EXPECT_NE(ProblemOf({{"negatives", "micro-batch"}, {"no_emb_gas", "on"}}), "");
  EXPECT_EQ(ProblemOf({{"mode", "unified"}, {"gen_mean", "micro-batch"}, {"no_emb_gas", "on"}}), "");
}

}  // namespace
}  // namespace trainwright
