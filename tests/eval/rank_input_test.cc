#include "lib/eval/rank_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace trainwright {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::StartsWith;

OptionValue OptionOf(const std::string& key, const std::string& value) {
  OptionValue option;
  option.key = key;
  option.value = value;
  return option;
}

TEST(FactsOfOptionsTest, TheOptionsThatShapeTheResultAreComparedByTheirFlags) {
  const std::vector<OptionValue> options = {OptionOf("temperature", "0.7"), OptionOf("output", "a.npy"),
                                            OptionOf("template", "")};
  EXPECT_THAT(FactsOfOptions(options, {"template", "temperature"}),
              ElementsAre(Pair("--temperature", "0.7"), Pair("--template", "not given")));
}

TEST(FactsOfOptionsTest, OfALongValueAHashIsCompared) {
  const std::vector<OptionValue> one = {OptionOf("prompt", std::string(200, 'a'))};
  const std::vector<OptionValue> other = {OptionOf("prompt", std::string(200, 'b'))};
  EXPECT_THAT(FactsOfOptions(one, {"prompt"}), ElementsAre(Pair("--prompt", StartsWith("of sha256 "))));
  EXPECT_NE(FactsOfOptions(one, {"prompt"}), FactsOfOptions(other, {"prompt"}));
}

}  // namespace
}  // namespace trainwright
