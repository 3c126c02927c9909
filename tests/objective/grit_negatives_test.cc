// Steps, and queries of a step, that have nothing to learn from.
#include "lib/objective/grit_negatives.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/model/small_models.h"
#include "tests/objective/grit_texts.h"

namespace trainwright {
namespace {

/// Queries of one positive and so many other passages each.
ContrastiveGroups GroupsWithOthers(const std::vector<int64_t>& others) {
  ContrastiveGroups groups;
  groups.first_passage.push_back(0);
  for (const int64_t count : others) {
    groups.positives.push_back(1);
    groups.first_passage.push_back(groups.first_passage.back() + 1 + count);
  }
  return groups;
}

TEST(GritNegatives, AQueryIsAloneWhereItsPositivesAreAllPassages) {
  EXPECT_EQ(CountQueries(GroupsWithOthers({0}), false), (QueryCount{.queries = 1, .alone = 1}));
  EXPECT_EQ(CountQueries(GroupsWithOthers({1}), false), (QueryCount{.queries = 1, .alone = 0}));
  EXPECT_EQ(CountQueries(GroupsWithOthers({0, 0}), false), (QueryCount{.queries = 2, .alone = 0}));
}

TEST(GritNegatives, AQueryIsAloneWhereItsMaskLeavesOutAllOthers) {
  ContrastiveGroups groups = GroupsWithOthers({1, 0});
  groups.query_text = {100, 101};
  groups.passage_text = {1, 2, 3};
  // The first record knows all three texts, one of them twice; the second one its own.
  groups.known_text = {1, 2, 2, 3, 3};
  groups.first_known = {0, 4, 5};
  EXPECT_EQ(CountQueries(groups, true), (QueryCount{.queries = 2, .alone = 1}));
  groups.known_text = {1, 2, 2, 2, 3};
  EXPECT_EQ(CountQueries(groups, true), (QueryCount{.queries = 2, .alone = 0}));
}

/// What a step of records of tests/objective/grit_texts.h ends with: number 0, 3, ... have no negatives.
std::optional<ErrorCode> CodeOfStep(const OwnOptions& more, int64_t queries) {
  OwnOptions own = {{"mode", "embedding"}};
  own.insert(more.begin(), more.end());
  const auto objective = test::GritOf(own);
  const ModelConfig config = test::SmallLlama();
  LanguageModel model(test::MakeBody(config, test::kFp32Numerics, test::kCpu, 5));
  const StepBatches step =
      test::GritStepOf(*objective, {.vocabulary = config.vocab_size, .queries = queries}, /*chunk=*/1);
  const StepPass pass = {.model = &model, .batches = &step};
  return test::CodeOf([&] { objective->Begin(pass, Solo()); });
}

TEST(GritNegatives, AStepInWhichNoQueryHasAnotherPassageIsRefused) {
  for (const char* negatives : {"step", "rank", "micro-batch"}) {
    EXPECT_EQ(CodeOfStep({{"negatives", negatives}}, 1), ErrorCode::kBadInput) << negatives;
    EXPECT_EQ(CodeOfStep({{"negatives", negatives}}, 2), std::nullopt) << negatives;
  }
}

TEST(GritNegatives, AMarginThatLeavesOutAllIsRefusedInTheFirstStep) {
  EXPECT_EQ(CodeOfStep({{"mask_false_negatives", "margin"}, {"false_negative_margin", 2.0}}, 6),
            ErrorCode::kBadInput);
}

}  // namespace
}  // namespace trainwright
