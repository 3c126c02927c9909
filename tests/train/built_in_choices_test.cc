// The registries that mains fill hold what the torch-free descriptions, and so the command line, say of them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/objective/objective_registry.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/spec/built_in_objectives.h"
#include "lib/spec/built_in_optimizers.h"

namespace trainwright {
namespace {

template <typename Described>
std::vector<std::string> NamesOf(const std::vector<Described>& all) {
  std::vector<std::string> names;
  for (const Described& described : all) {
    if constexpr (requires { described.description; }) {
      names.push_back(described.name());
    } else {
      names.push_back(described.name);
    }
  }
  return names;
}

TEST(BuiltInChoices, ObjectivesAreThoseThatAreDescribed) {
  EXPECT_EQ(NamesOf(BuiltInObjectives().all()), NamesOf(BuiltInObjectiveDescriptions()));
}

TEST(BuiltInChoices, OptimizersAreThoseThatAreDescribed) {
  EXPECT_EQ(NamesOf(BuiltInOptimizers().all()), NamesOf(BuiltInOptimizerDescriptions()));
}

}  // namespace
}  // namespace trainwright
