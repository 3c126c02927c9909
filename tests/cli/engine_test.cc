#include "lib/cli/engine.h"

#include <gtest/gtest.h>

namespace trainwright {
namespace {

TEST(EngineTest, OnlyQuestionsAboutTheCommandLineAreAnsweredWithoutIt) {
  EXPECT_TRUE(AsksAboutCommandLine({"train", "--steps", "5", "--help"}));
  EXPECT_TRUE(AsksAboutCommandLine({"train", "-h"}));
  EXPECT_TRUE(AsksAboutCommandLine({"train", "--version"}));
  EXPECT_TRUE(AsksAboutCommandLine({"train", "--config", "a.yaml", "--print-config"}));
  EXPECT_FALSE(AsksAboutCommandLine({"train"}));
  EXPECT_FALSE(AsksAboutCommandLine({"generate", "--prompt=--help"}));
  EXPECT_FALSE(AsksAboutCommandLine({"generate", "--", "--help"}));
  EXPECT_FALSE(AsksAboutCommandLine({}));
}

TEST(EngineTest, LiesBesideTheFolderOfTheProgramUnderItsName) {
  EXPECT_EQ(EnginePath("/usr/local/bin/tw-train"), "/usr/local/libexec/trainwright/tw-train-engine");
}

}  // namespace
}  // namespace trainwright
