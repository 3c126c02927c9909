// Lists of modules that are trained whole, said in other words.
#include <gtest/gtest.h>

#include "lib/spec/saved_modules.h"

namespace trainwright {
namespace {

TEST(MeanSameModulesTest, WholeWhateverTheOrderAndHoweverMuchOfThePath) {
  EXPECT_TRUE(MeanSameModules("embed_tokens,lm_head", "lm_head,model.embed_tokens"));
  EXPECT_TRUE(MeanSameModules("model.embed_tokens", "embed_tokens"));
  EXPECT_TRUE(MeanSameModules("", ""));
  EXPECT_FALSE(MeanSameModules("embed_tokens", "lm_head,model.embed_tokens"));
  EXPECT_FALSE(MeanSameModules("lm_head,embed_tokens", "lm_head"));
  EXPECT_FALSE(MeanSameModules("tokens", "model.embed_tokens"));
  EXPECT_FALSE(MeanSameModules("lm_head", ""));
}

}  // namespace
}  // namespace trainwright
