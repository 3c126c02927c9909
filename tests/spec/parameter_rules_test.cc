// Names of parameters as a user writes them.
#include <gtest/gtest.h>

#include <string>

#include "lib/base/error.h"
#include "lib/spec/parameter_rules.h"

namespace trainwright {
namespace {

TEST(ParameterRulesTest, APatternMeansWholeNamesAndWholePartsOfThem) {
  const std::string name = "model.layers.1.self_attn.q_proj.weight";
  for (const char* pattern : {"model.layers.1.self_attn.q_proj.weight", "q_proj", "layers.1", "layers.[0-3]",
                              "self_attn.?_proj", "model", "weight", "*q_proj*", "layers.*.q_proj", "*"}) {
    EXPECT_TRUE(MeansParameter(pattern, name)) << pattern;
  }
  for (const char* pattern : {"proj", "layers", "layers.[2-3]", "layer", "q_proj.bias", "ayers.1"}) {
    EXPECT_EQ(MeansParameter(pattern, name), std::string(pattern) == "layers") << pattern;
  }
  EXPECT_FALSE(MeansParameter("layers.1", "model.layers.11.norm.weight"));
}

TEST(ParameterRulesTest, FactorsAreNumbersAboveZero) {
  const auto factors = ParseLrScale("lm_head=0.1,layers.[0-1]=1e-3");
  ASSERT_EQ(factors.size(), 2u);
  EXPECT_EQ(factors[0], (std::pair<std::string, double>("lm_head", 0.1)));
  EXPECT_EQ(factors[1].second, 1e-3);
  for (const char* bad : {"lm_head", "lm_head=", "=2", "lm_head=0", "lm_head=-1", "lm_head=nan", "lm_head=2x",
                          "lm_head=inf", "a=1,,b=2"}) {
    EXPECT_THROW(ParseLrScale(bad), Error) << bad;
  }
}

TEST(ParameterRulesTest, AnEmptyPatternIsRefused) {
  EXPECT_THROW(CheckParameterRules({.freeze = "a,,b"}), Error);
  EXPECT_THROW(CheckParameterRules({.no_decay = ",a"}), Error);
  EXPECT_NO_THROW(CheckParameterRules({}));
}

}  // namespace
}  // namespace trainwright
