#include "lib/cli/help_text.h"

#include <CLI/Version.hpp>
#include <algorithm>
#include <cctype>

#include "lib/base/version.h"
#include "lib/cli/text_folding.h"

namespace trainwright {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kHelpColumn = 30, kStatusColumn = 12;
constexpr size_t kLongestWord = 30;  // of choices that are written as one

std::string WithoutBackticks(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), '`'), text.end());
  return text;
}

std::string Paragraphs(const std::string& text, size_t indent) {
  return FoldParagraphs(WithoutBackticks(text), indent, kWidth);
}

std::string UsageLine(const ToolDoc& doc) {
  return doc.info.name + " " + SynopsisArguments(doc);
}

}  // namespace

std::string FirstSentence(const std::string& text) {
  size_t end = 0;
  for (int depth = 0; end < text.size() && text[end] != '\n'; ++end) {
    if (text[end] == '(') ++depth;
    if (text[end] == ')') --depth;
    const bool stop = text[end] == '.' || text[end] == ';';
    if (depth == 0 && stop &&
        (end + 1 == text.size() || std::isspace(static_cast<unsigned char>(text[end + 1])) != 0))
      break;
  }
  return text.substr(0, end);
}

std::string OptionNotes(const OptionDoc& option) {
  std::vector<std::string> notes;
  if (option.required && !option.is_positional()) notes.push_back("required");
  if (!option.default_text.empty()) notes.push_back("default " + option.default_text);
  if (!option.choices.empty()) notes.push_back("one of " + Join(option.choices, ", "));
  if (!option.constraint.empty()) notes.push_back(option.constraint);
  if (option.repeated && !option.is_positional()) notes.push_back("may be repeated");
  return Join(notes, "; ");
}

std::string ShortHelp(const ToolDoc& doc) {
  std::string text = FoldBehind("usage:", UsageLine(doc), 7, kWidth) +
                     Fold(doc.info.name + ": " + WithoutBackticks(doc.info.summary), 0, kWidth);
  const auto add = [&](const OptionDoc& option) {
    const bool aligned = option.short_names.empty() && !option.is_positional();
    const std::string usage = "  " + std::string(aligned ? 4 : 0, ' ') + option.Usage() + " ";
    std::string help = WithoutBackticks(FirstSentence(option.help));
    const bool named =
        std::all_of(option.choices.begin(), option.choices.end(),
                    [&](const std::string& choice) { return help.find(choice) != std::string::npos; });
    if (!named) {
      const std::string choices = Join(option.choices, "|");
      help += " (" + (choices.size() <= kLongestWord ? choices : Join(option.choices, ", ")) + ")";
    }
    if (!option.default_text.empty()) help += " [" + option.default_text + "]";
    text += FoldBehind(usage, help, kHelpColumn, kWidth);
  };
  for (const OptionDoc& option : doc.options) {
    if (option.is_positional()) add(option);
  }
  for (const std::string& group : GroupsOf(doc)) {
    text += "\n" + group + ":\n";
    for (const OptionDoc& option : doc.options) {
      if (option.group == group && !option.is_positional()) add(option);
    }
  }
  return text + "\n'" + doc.info.name + " --help' says more; so does 'man " + doc.info.name + "'.\n";
}

std::string LongHelp(const ToolDoc& doc) {
  std::string text = Fold(doc.info.name + " - " + WithoutBackticks(doc.info.summary), 0, kWidth) +
                     "\nSYNOPSIS\n" + Fold(UsageLine(doc), 2, kWidth) + "\nDESCRIPTION\n" +
                     Paragraphs(doc.info.text.description, 2);
  const auto add = [&](const OptionDoc& option) {
    text += "  " + option.Usage() + "\n" + Paragraphs(option.help, 6);
    const std::string notes = OptionNotes(option);
    const std::string environment =
        option.environment.empty() ? "" : (notes.empty() ? "" : "; ") + ("environment " + option.environment);
    if (!notes.empty() || !environment.empty()) text += Fold("(" + notes + environment + ")", 6, kWidth);
    text += "\n";
  };
  const auto is_positional = [](const OptionDoc& option) { return option.is_positional(); };
  if (std::any_of(doc.options.begin(), doc.options.end(), is_positional)) text += "\nARGUMENTS\n";
  for (const OptionDoc& option : doc.options) {
    if (option.is_positional()) add(option);
  }
  for (const std::string& group : GroupsOf(doc)) {
    std::string title = group;
    std::transform(title.begin(), title.end(), title.begin(),
                   [](unsigned char c) { return std::toupper(c); });
    text += (text.ends_with("\n\n") ? "" : "\n") + title + "\n";
    for (const OptionDoc& option : doc.options) {
      if (option.group == group && !option.is_positional()) add(option);
    }
  }
  const auto section = [&](const std::string& title, const std::string& body) {
    text += title + "\n" + body + (body.ends_with("\n\n") ? "" : "\n");
  };
  for (const ToolSection& extra : doc.info.text.sections) section(extra.title, Paragraphs(extra.text, 2));
  section("CONFIGURATION", Paragraphs(ConfigurationText(), 2));
  if (!doc.info.text.examples.empty()) {
    std::string body;
    for (const ToolExample& example : doc.info.text.examples) {
      body += Fold(WithoutBackticks(example.explanation), 2, kWidth) +
              FoldCommand(example.command, 4, kWidth) + "\n";
    }
    section("EXAMPLES", body);
  }
  std::string statuses;
  for (const auto& [status, meaning] : ExitStatusTable(doc.info.filter)) {
    statuses += FoldBehind("  " + status, meaning, kStatusColumn, kWidth);
  }
  section("EXIT STATUS", statuses);
  if (!doc.info.see_also.empty()) text += "SEE ALSO\n" + Fold(Join(doc.info.see_also, ", "), 2, kWidth);
  return text;
}

std::string VersionText(const ToolInfo& info) {
  std::string text = info.name + " (Trainwright) " TRAINWRIGHT_VERSION "\nbuilt with: ";
#if defined(__clang__)
  text += "clang " __clang_version__;
#else
  text += "g++ " __VERSION__;
#endif
  text += ", CLI11 " CLI11_VERSION;
  if (!info.build_features.empty()) text += ", " + info.build_features;
  return text + "\nLicence Apache-2.0: <https://www.apache.org/licenses/LICENSE-2.0>\n";
}

std::vector<std::pair<std::string, std::string>> ExitStatusTable(bool filter) {
  std::vector<std::pair<std::string, std::string>> table = {
      {"0", "success"},
      {"1", "the answer is \"no\": a verification found a difference, a threshold was not met"},
      {"2", "wrong usage or configuration"},
      {"3", "bad input: corrupt, cut short, of an unknown version, made with another tokenizer"},
      {"4",
       "input or output failed (open, write, disk full, standard output), or the machine ran out of memory"},
      {"5", "the device failed: no GPU though one is required, out of device memory"},
      {"6", "a loss or gradient is not finite"},
      {"7", "undecided: a measurement is too noisy to answer"},
      {"70", "a bug in this program"},
      {"130, 143",
       "stopped by SIGINT (130), or by SIGTERM or SIGHUP (143), after what is worth saving was saved; a "
       "SIGHUP "
       "that is ignored from the start, as under nohup(1), stays ignored"}};
  if (filter) table.emplace_back("141", "the reader of standard output went away (SIGPIPE)");
  return table;
}

std::string ConfigurationText() {
  return "Every option can also come from the environment or from a configuration file. A flag on the "
         "command line comes first, then the variable `TRAINWRIGHT_` followed by the long name in capitals "
         "with `_` for `-` (where another tool's option of that name means something else, the variable that "
         "is listed with the option), then the file that --config names, then the built-in default. An empty "
         "variable counts as unset, and so does one whose value only another tool's option of that name "
         "takes, or whose option needs another that is not given; an empty value on the command line or in "
         "the file is refused where it would mean the same as none.\n\n"
         "The file is flat YAML: one `name: value` a line, the names as above without the dashes, flags as "
         "`true` or `false`, and a list `[a, b]` for an option that may be repeated. A name that does not "
         "exist is an error. --print-config writes the effective configuration in this form; read back with "
         "--config it gives the same values.";
}

}  // namespace trainwright
