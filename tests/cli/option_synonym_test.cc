// Names that other programs give to options.
#include <gtest/gtest.h>

#include "lib/cli/config_file.h"
#include "lib/cli/config_synonym.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

const OptionSynonyms kSynonyms = {
    {"rate", {.key = "lr", .notice = "a step"}},
    {"half", {.key = "precision", .words = {{"true", "fp16"}, {"false", ""}}, .only_words = true}},
    {"log-to", {.key = ""}},
    {"modules", {.key = "targets", .joins = true}}};

TEST(OptionSynonymTest, AHintTellsTheNameHere) {
  EXPECT_EQ(HintOfSynonym(kSynonyms, "--rate"), "its name here is --lr: a step");
  EXPECT_EQ(HintOfSynonym(kSynonyms, "--half"), "its name here is --precision fp16");
  EXPECT_EQ(HintOfSynonym(kSynonyms, "--log_to"), "it has no effect here");
  EXPECT_EQ(HintOfSynonym(kSynonyms, "--rat"), "");
}

TEST(OptionSynonymTest, KeysAndWordsOfAFileAreTranslated) {
  std::vector<std::string> notices;
  const auto translated = [&](const std::vector<ConfigEntry>& entries) {
    notices.clear();
    std::string text;
    const auto is_ours = [](const std::string& key) { return key == "lr" || key == "batch-size"; };
    for (const ConfigEntry& entry : WithOurNames(entries, is_ours, kSynonyms, "f", &notices))
      text += entry.key + "=" + entry.values[0] + " ";
    return text;
  };
  const auto entry = [](const std::string& key, const std::string& value) {
    return ConfigEntry{.key = key, .values = {value}, .line = 3};
  };
  EXPECT_EQ(translated({entry("rate", "1"), entry("batch_size", "2")}), "lr=1 batch-size=2 ");
  EXPECT_EQ(notices, (std::vector<std::string>{"f: key 'rate' in line 3 is read as lr: a step"}));
  EXPECT_EQ(translated({entry("half", "true")}), "precision=fp16 ");
  EXPECT_EQ(translated({entry("half", "false")}), "");
  EXPECT_EQ(translated({entry("log_to", "x")}), "");
  EXPECT_EQ(notices, (std::vector<std::string>{"f: key 'log_to' in line 3 has no effect here"}));
  EXPECT_EQ(translated({entry("other", "x")}), "other=x ");  // whoever reads it refuses it
  EXPECT_EQ(test::CodeOf([&] { translated({entry("half", "maybe")}); }), ErrorCode::kUsage);
  EXPECT_EQ(test::CodeOf([&] { translated({entry("lr", "1"), entry("rate", "2")}); }), ErrorCode::kUsage);
}

TEST(OptionSynonymTest, AListIsOneValueWhereTheOptionTakesNames) {
  std::vector<std::string> notices;
  const auto translated = [&](const std::vector<std::string>& values) {
    const ConfigEntry entry = {.key = "modules", .values = values, .is_list = true, .line = 3};
    return WithOurNames(
        {entry}, [](const std::string&) { return false; }, kSynonyms, "f", &notices);
  };
  const std::vector<ConfigEntry> joined = translated({"q", "v"});
  ASSERT_EQ(joined.size(), 1U);
  EXPECT_EQ(joined[0].key, "targets");
  EXPECT_EQ(joined[0].values, std::vector<std::string>{"q,v"});
  EXPECT_FALSE(joined[0].is_list);
  EXPECT_EQ(PlaceOf(joined[0], "f"), "f: key 'modules' in line 3") << "as the file has it";
  EXPECT_TRUE(translated({}).empty());
}

const OptionSynonyms kNestedSynonyms = {
    {"upload", {.key = "", .words = {{"false", ""}}, .only_words = true, .instead = "copy it"}},
    {"schedule-kwargs", {.key = "", .words = {{"", ""}}, .only_words = true, .instead = "rates alone"}},
    {"schedule-kwargs.rate", {.key = "lr"}},
    {"aside", {.key = "", .told_together = true}}};

TEST(OptionSynonymTest, AFileOfAnotherProgramIsReadByPathsAndSaysNothingWhereItIsNull) {
  std::vector<std::string> notices;
  const auto read = [&](const std::string& text) {
    std::string read;
    const auto entries = ParseConfig(text, "f", std::nullopt, kNestedSynonyms);
    for (const ConfigEntry& entry : WithOurNames(
             entries, [](const std::string&) { return false; }, kNestedSynonyms, "f", &notices))
      read += entry.key + "=" + entry.values[0] + " ";
    return read;
  };
  EXPECT_EQ(read("upload: null\nschedule_kwargs: {rate: 2}\naside: {a: 1, b: {c: 2}}\n"), "lr=2 ");
  EXPECT_EQ(notices.back(), "f: without effect here: aside.a, aside.b.c");
  EXPECT_EQ(read("upload: False\nother: 1\n"), "other=1 ");
  EXPECT_EQ(notices.back(), "f: without effect here: upload");
  for (const char* const refused :
       {"upload: true", "schedule_kwargs: {power: 2}", "other: null", "other: {a: 1}", "aside: [{a: 1}]"})
    EXPECT_EQ(test::CodeOf([&] { read(refused); }), ErrorCode::kUsage) << refused;
}

TEST(OptionSynonymTest, AHintTellsWhatServesInstead) {
  EXPECT_EQ(HintOfSynonym(kNestedSynonyms, "--upload"), "copy it");
  EXPECT_EQ(HintOfSynonym(kNestedSynonyms, "--schedule_kwargs"), "rates alone");
  EXPECT_EQ(HintOfSynonym({{"some-rate", {.key = "some-rate"}}}, "--some_rate"), "") << "ours but for dashes";
}

}  // namespace
}  // namespace trainwright
