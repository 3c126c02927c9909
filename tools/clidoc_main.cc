// clidoc: writes man pages, shell completions and the frozen command line from the tools' own definitions.
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/cli/cli_json.h"
#include "lib/cli/completion.h"
#include "lib/cli/man_page.h"
#include "lib/cli/tool.h"
#include "tools/all_tools.h"

namespace {

using namespace trainwright;

struct ClidocOptions {
  std::string form, tool, date;
};

const ToolInfo& ClidocInfo() {
  static const ToolInfo info = {
      .name = "clidoc",
      .summary = "write documentation from the tools' command lines",
      .text = {.description =
                   "Writes one form of documentation of one tool to standard output. `list` names the "
                   "tools; `json` and `lint` cover all of them when no tool is named.",
               .examples = {{"clidoc bash pack", "The completions of pack for bash."}}},
      .see_also = {"pretokenize(1)"}};
  return info;
}

int Run(const ClidocOptions& options) {
  const auto selected = [&](const ToolInfo& info) {
    return options.tool.empty() || options.tool == info.name;
  };
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  bool found = false, clean = true;
  for (const ToolDefinition& tool : AllTools()) {
    if (!selected(*tool.info)) continue;
    found = true;
    const ToolDoc doc = DescribeTool(*tool.info, tool.define);
    if (options.form == "list") {
      std::cout << tool.info->name << "\n";
    } else if (options.form == "json") {
      all.push_back(CliJson(doc));
    } else if (options.form == "lint") {
      for (const std::string& problem : LintTool(doc)) {
        std::cout << problem << "\n";
        clean = false;
      }
    } else if (options.tool.empty()) {
      throw Error(ErrorCode::kUsage, "TOOL", "is required for " + options.form);
    } else if (options.form == "man") {
      std::cout << ManPage(doc, options.date);
    } else if (options.form == "bash") {
      std::cout << BashCompletion(doc);
    } else if (options.form == "zsh") {
      std::cout << ZshCompletion(doc);
    } else {
      std::cout << FishCompletion(doc);
    }
  }
  if (!found)
    throw Error(ErrorCode::kUsage, options.tool, "is no tool of the suite", "", "clidoc list names them");
  if (options.form == "json") std::cout << all.dump(2) << "\n";
  return clean ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  ClidocOptions options;
  return RunTool(
      argc, argv, ClidocInfo(),
      [&](CLI::App& app) {
        app.add_option("FORM", options.form, "What to write.")
            ->check(CLI::IsMember({"man", "bash", "zsh", "fish", "json", "list", "lint"}))
            ->required();
        app.add_option("TOOL", options.tool, "The tool.");
        app.add_option("--date", options.date, "Date of man pages, as in 2026-11-21.");
      },
      [&](ToolRun&) { return Run(options); });
}
