#include "lib/bench/guide_models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace trainwright {
namespace {

TEST(GuideModelsTest, TheExamplesAreAsManyDocumentsAsTheGuideOfTheLoraTrainerHas) {
  const std::vector<uint16_t> examples = GuideExamples();
  EXPECT_EQ(std::count(examples.begin(), examples.end(), kGuideVocabulary - 1), kGuideExamples);
  EXPECT_EQ(examples.back(), kGuideVocabulary - 1);
  // They are the first documents of the larger set.
  EXPECT_EQ(GuideIds(examples.size()), examples);
}

}  // namespace
}  // namespace trainwright
