#include "lib/cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lib/cli/option_table.h"
#include "tests/cli/sample_tool/sample_tool.h"

namespace trainwright::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A tool with one option of its own.
ToolDoc DocOf(const std::string& names, const std::string& type_name,
              const ToolInfo& info = SampleInfo(true)) {
  std::string value;
  return DescribeTool(info,
                      [&](CLI::App& app) { app.add_option(names, value, "A value.")->type_name(type_name); });
}

TEST(CompletionTest, AnArgumentThatHasAFlagTooIsCompletedAsAPath) {
  const ToolDoc doc = DocOf("--texts,texts", "FILE");
  EXPECT_THAT(BashCompletion(doc), HasSubstr("  fi\n  compopt -o filenames 2>/dev/null\n"));
  EXPECT_THAT(FishCompletion(doc), Not(HasSubstr("complete -c sample -f\n")));
  EXPECT_THAT(ZshCompletion(doc), HasSubstr(" \\\n  ':TEXTS:_files' \\\n  '--texts=["));
}

TEST(CompletionTest, AnArgumentThatIsNoPathIsNotCompletedAsOne) {
  const ToolDoc doc = DocOf("--prompt,prompt", "TEXT");
  EXPECT_THAT(BashCompletion(doc), Not(HasSubstr("  fi\n  compopt")));
  EXPECT_THAT(FishCompletion(doc), HasSubstr("complete -c sample -f\n"));
}

TEST(CompletionTest, ARunIsCompletedAsAFolder) {
  const ToolDoc doc = DocOf("--from", "RUN[@STEP]");
  EXPECT_THAT(BashCompletion(doc), HasSubstr("    --from) compopt -o filenames 2>/dev/null; mapfile -t "
                                             "COMPREPLY < <(compgen -d -- \"$current\"); return ;;\n"));
  EXPECT_THAT(FishCompletion(doc), HasSubstr(" -l from -x -a '(__fish_complete_directories)'"));
}

TEST(CompletionTest, NamesAreCompletedBesidePaths) {
  ToolInfo info = SampleInfo(true);
  info.suggestions = {{"model", {"small", "large"}}};
  const ToolDoc files = DocOf("--model", "PRESET|FILE", info);
  EXPECT_THAT(BashCompletion(files),
              HasSubstr("    --model) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -W "
                        "'small large' -- \"$current\"; compgen -f -- \"$current\"); return ;;\n"));
  EXPECT_THAT(ZshCompletion(files), HasSubstr("]:PRESET|FILE: _alternative \"names\\:name\\:(small large)\" "
                                              "\"paths\\:path\\:_files\"'"));
  EXPECT_THAT(FishCompletion(files), HasSubstr(" -l model -r -F -a 'small large' -d "));
  const ToolDoc folders = DocOf("--model", "NAME|DIR", info);
  EXPECT_THAT(BashCompletion(folders), HasSubstr("'small large' -- \"$current\"; compgen -d -- "));
  EXPECT_THAT(ZshCompletion(folders), HasSubstr("\"paths\\:path\\:_files -/\"'"));
  EXPECT_THAT(FishCompletion(folders), HasSubstr(" -x -a 'small large (__fish_complete_directories)' -d "));
}

TEST(CompletionTest, NamesAreCompletedWhereAValueIsNoPath) {
  ToolInfo info = SampleInfo(true);
  info.suggestions = {{"colour", {"red", "blue"}}};
  const ToolDoc doc = DocOf("--colour", "TEXT", info);
  EXPECT_THAT(BashCompletion(doc), HasSubstr("    --colour) COMPREPLY=($(compgen -W 'red blue' -- "));
  EXPECT_THAT(ZshCompletion(doc), HasSubstr("]:TEXT:(red blue)'"));
  EXPECT_THAT(FishCompletion(doc), HasSubstr(" -l colour -x -a 'red blue' -d "));
}

}  // namespace
}  // namespace trainwright::test
