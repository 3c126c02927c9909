#include "lib/spec/family_options.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/spec/built_in_families.h"
#include "lib/spec/ten_family.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::MessageOf;

ModelConfig ChosenShape(const std::string& preset, const OwnOptions& asked) {
  ModelConfig config = BuiltInDescriptions().PresetConfig(preset, 300);
  ChooseShape(BuiltInDescriptions(), asked, &config);
  return config;
}

/// The message where a shape is given; empty: it is what was asked.
std::string ProblemOfShape(const ModelConfig& given, const OwnOptions& asked) {
  return MessageOf([&] { RequireShape(BuiltInDescriptions(), asked, given, "some/config.json"); });
}

TEST(FamilyOptions, ChooseAmongTheShapesOfAPreset) {
  const ModelConfig config = ChosenShape("ten-nano", {{"ten_init", "compat"}, {"ten_chunk", "64"}});
  EXPECT_EQ(TenFieldsOf(config).init, TenInit::kCompat);
  EXPECT_EQ(TenFieldsOf(config).scan_chunk, 64);
  EXPECT_FALSE(TenFieldsOf(config).selective);
  EXPECT_EQ(ChosenShape("llama-1m", {}), BuiltInDescriptions().PresetConfig("llama-1m", 300));
}

TEST(FamilyOptions, OfAnotherFamilyAreRefusedByTheirFlag) {
  const auto choose = [] { ChosenShape("llama-1m", {{"selective", "on"}}); };
  EXPECT_EQ(CodeOf(choose), ErrorCode::kUsage);
  EXPECT_EQ(MessageOf(choose).substr(0, 65),
            "--selective: has a meaning only with models of the family ten | l");
}

TEST(FamilyOptions, WithValuesThatTheyCannotHaveAreRefusedByTheirFlag) {
  EXPECT_EQ(MessageOf([] {
              ChosenShape("ten-nano", {{"ten_init", "random"}});
            }),
            "--ten-init: cannot be 'random' | one of lru, compat");
  EXPECT_EQ(MessageOf([] {
              ChosenShape("ten-nano", {{"ten_chunk", "0"}});
            }),
            "--ten-chunk: cannot be '0' | a whole number from 1 to 1048576");
}

TEST(FamilyOptions, AreRefusedWhereAGivenShapeSaysOtherwise) {
  const ModelConfig given = ChosenShape("ten-nano", {{"ten_init", "compat"}});
  EXPECT_EQ(ProblemOfShape(given, {}), "");
  EXPECT_EQ(ProblemOfShape(given, {{"ten_init", "compat"}, {"ten_chunk", "256"}, {"selective", "off"}}), "");
  EXPECT_EQ(ProblemOfShape(given, {{"ten_init", "lru"}}),
            "--ten-init: lru differs from compat of some/config.json | leave out --ten-init, which chooses "
            "among the shapes of presets");
  EXPECT_NE(ProblemOfShape(given, {{"ten_chunk", "64"}}), "");
  EXPECT_NE(ProblemOfShape(given, {{"selective", "on"}}), "");
}

}  // namespace
}  // namespace trainwright
