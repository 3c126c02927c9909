#include "lib/cli/man_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/nearest_name.h"
#include "lib/cli/cli_json.h"
#include "lib/cli/completion.h"
#include "lib/cli/help_text.h"
#include "lib/cli/option_table.h"
#include "tests/cli/sample_tool/sample_tool.h"

namespace trainwright::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

ToolDoc SampleDoc() {
  SampleOptions options;
  return DescribeTool(SampleInfo(true), [&](CLI::App& app) { DefineSampleOptions(app, &options); });
}

TEST(EscapeRoffTest, MakesMinusSignsOfFlagsAndEscapesWhatRoffReads) {
  EXPECT_EQ(EscapeRoff("a well-known --max-tokens, or -q"), "a well-known \\-\\-max\\-tokens, or \\-q");
  EXPECT_EQ(EscapeRoff("it's `a-b` 2^3 \\n ~"), "it\\(aqs \\fBa\\-b\\fR 2\\(ha3 \\en \\(ti");
  EXPECT_EQ(EscapeRoff("größe €"), "gr\\[u00F6]\\[u00DF]e \\[u20AC]");
}

TEST(ManPageTest, HasTheSectionsInTheirOrder) {
  const std::string page = ManPage(SampleDoc(), "2026-01-02");
  size_t at = 0;
  for (const char* section : {".TH SAMPLE 1 2026-01-02 ", ".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION",
                              ".SH OPTIONS", ".SH CONFIGURATION", ".SH EXAMPLES", ".SH EXIT STATUS",
                              ".SH ENVIRONMENT", ".SH FILES", ".SH SEE ALSO"}) {
    const size_t found = page.find(section, at);
    ASSERT_NE(found, std::string::npos) << section;
    at = found;
  }
}

TEST(ManPageTest, TellsTheTextsOwnVariablesBehindThoseOfTheOptions) {
  ToolDoc doc = SampleDoc();
  doc.info.text.sections.push_back({"ENVIRONMENT", "  SAMPLE_PLACE   where samples are"});
  const std::string page = ManPage(doc, "2026-01-02");
  const size_t heading = page.find(".SH ENVIRONMENT"), variable = page.find("SAMPLE_PLACE");
  EXPECT_EQ(page.rfind(".SH ENVIRONMENT"), heading);
  EXPECT_LT(page.find(".B COLUMNS", heading), variable);
  EXPECT_LT(variable, page.find(".SH FILES"));
}

TEST(ManPageTest, NoLineStartsAnUnmeantRequest) {
  const std::string page = ManPage(SampleDoc(), "2026-01-02");
  EXPECT_THAT(page, HasSubstr("\n  .hidden\n"));
  EXPECT_THAT(page, Not(::testing::ContainsRegex("\n'")));
  EXPECT_THAT(page, HasSubstr("\\-\\-steps isn\\(aqt a well-known flag."));
}

TEST(OptionTableTest, TellsChoicesBoundsDefaultsAndRepetition) {
  const ToolDoc doc = SampleDoc();
  const auto find = [&](const std::string& name) {
    for (const OptionDoc& option : doc.options) {
      if (!option.long_names.empty() && option.long_names[0] == name) return option;
    }
    return OptionDoc{};
  };
  EXPECT_THAT(find("mode").choices, ElementsAre("fast", "exact"));
  EXPECT_EQ(find("steps").constraint, "from 1 to 1000");
  EXPECT_EQ(find("steps").default_text, "10");
  EXPECT_EQ(find("rate").constraint, "greater than 0");
  EXPECT_EQ(find("scale").default_text, "1,0.5");
  EXPECT_TRUE(find("scale").repeated);
  EXPECT_EQ(find("megabytes").environment, "TRAINWRIGHT_MEGABYTES");
  EXPECT_EQ(find("print-config").environment, "");
  EXPECT_TRUE(find("force").is_flag());
  EXPECT_EQ(SynopsisArguments(doc), "[OPTION]... [FILE]...");
}

TEST(OptionTableTest, ANameOfAValueMayHoldAColonInBrackets) {
  std::vector<std::string> slices;
  int64_t level = 1;
  const ToolDoc doc = DescribeTool(SampleInfo(true), [&](CLI::App& app) {
    app.add_option("--slice", slices, "A slice.")->type_name("NAME[FIRST:END]");
    app.add_option("--level", level, "A level.")->type_name("N[:M]")->check(CLI::Range(1, 9));
  });
  EXPECT_EQ(doc.options[0].value_name, "NAME[FIRST:END]");
  EXPECT_EQ(doc.options[0].constraint, "");
  EXPECT_EQ(doc.options[1].value_name, "N[:M]");
  EXPECT_EQ(doc.options[1].constraint, "from 1 to 9");
  EXPECT_THAT(LongHelp(doc), HasSubstr("--slice NAME[FIRST:END]"));
  EXPECT_THAT(ZshCompletion(doc), HasSubstr("]:NAME[FIRST\\:END]:"));
}

TEST(FirstSentenceTest, EndsAtStopsOutsideBrackets) {
  EXPECT_EQ(FirstSentence("Shards, as 0.5 GB. More."), "Shards, as 0.5 GB");
  EXPECT_EQ(FirstSentence("Folder (default: the next; see below); else none."),
            "Folder (default: the next; see below)");
  EXPECT_EQ(FirstSentence("Ends."), "Ends");
}

TEST(NearestNameTest, FindsSlipsAndNothingForStrangers) {
  const std::vector<std::string> names = {"--steps", "--seed", "--mixed-precision"};
  EXPECT_EQ(NearestName("--step", names), "--steps");
  EXPECT_EQ(NearestName("--mixed-precison", names), "--mixed-precision");
  EXPECT_EQ(NearestName("--mixed", names), "--mixed-precision");
  EXPECT_EQ(NearestName("--quantum-foam", names), "");
}

TEST(LintTest, FindsWhatBreaksTheRules) {
  EXPECT_THAT(LintTool(SampleDoc()), IsEmpty());
  ToolDoc doc = SampleDoc();
  doc.options[1].long_names[0] = "Out_put";
  doc.options[2].short_names[0] = "o";
  doc.options[3].help.clear();
  doc.info.summary = "A sentence.";
  EXPECT_THAT(LintTool(doc),
              ElementsAre(HasSubstr("lower case with dashes"), HasSubstr("short name is taken twice"),
                          HasSubstr("has no help"), HasSubstr("summary")));
}

}  // namespace
}  // namespace trainwright::test
