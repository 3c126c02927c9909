#include "lib/cli/completion.h"

#include <algorithm>

#include "lib/cli/help_text.h"
#include "lib/cli/text_folding.h"

namespace trainwright {
namespace {

constexpr char kGenerated[] = "by clidoc; scripts/update_generated.sh writes it again.\n";

enum class ValueKind { kNone, kChoice, kFile, kFolder, kOther };

ValueKind KindOf(const OptionDoc& option) {
  if (option.is_flag()) return ValueKind::kNone;
  if (!option.choices.empty()) return ValueKind::kChoice;
  const std::string& value = option.value_name;
  // What may be a file or a folder completes as files do, which shows folders too.
  for (const char* word : {"FILE", "PATH", "SHARD", "CHECKPOINT", "INPUT"}) {
    if (value.find(word) != std::string::npos) return ValueKind::kFile;
  }
  const bool is_folder = value.find("DIR") != std::string::npos || value.starts_with("RUN");
  return is_folder ? ValueKind::kFolder : ValueKind::kOther;
}

bool IsPath(ValueKind kind) {
  return kind == ValueKind::kFile || kind == ValueKind::kFolder;
}

/// Whether an argument is a path; it may be that of an option with a flag, too.
bool TakesPaths(const ToolDoc& doc) {
  return std::any_of(doc.options.begin(), doc.options.end(), [](const OptionDoc& option) {
    return !option.positional.empty() && IsPath(KindOf(option));
  });
}

std::vector<std::string> Flags(const OptionDoc& option) {
  std::vector<std::string> flags;
  if (option.is_positional()) return flags;
  for (const std::string& name : option.short_names) flags.push_back("-" + name);
  for (const std::string& name : option.long_names) flags.push_back("--" + name);
  return flags;
}

/// The short help without quotes and brackets, which would need another escape in every shell.
std::string PlainHelp(const OptionDoc& option) {
  std::string help = FirstSentence(option.help);
  std::string plain;
  for (const char c : help) {
    if (c == '\'' || c == '`' || c == '"' || c == '\\' || c == '$') continue;
    plain += c == '[' ? '(' : c == ']' ? ')' : c == '\n' ? ' ' : c;
  }
  return plain;
}

std::string Identifier(const std::string& tool) {
  std::string name = "_trainwright_" + tool;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string ZshEscape(std::string text) {
  for (size_t at = 0; (at = text.find(':', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

/// The words that a value may be: all of them, or those beside others.
std::string WordsOf(const OptionDoc& option) {
  return Join(KindOf(option) == ValueKind::kChoice ? option.choices : option.suggestions, " ");
}

std::string BashAction(const OptionDoc& option) {
  const ValueKind kind = KindOf(option);
  const std::string words = WordsOf(option);
  const std::string of_words = words.empty() ? "" : "compgen -W '" + words + "' -- \"$current\"";
  if (!IsPath(kind)) return words.empty() ? "return" : "COMPREPLY=($(" + of_words + ")); return";
  const std::string of_paths = kind == ValueKind::kFile ? "compgen -f" : "compgen -d";
  return "compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(" + of_words +
         (words.empty() ? "" : "; ") + of_paths + " -- \"$current\"); return";
}

std::string ZshAction(const OptionDoc& option) {
  const ValueKind kind = KindOf(option);
  const std::string words = WordsOf(option);
  const std::string of_words = words.empty() ? "" : "(" + words + ")";
  if (!IsPath(kind)) return of_words;
  const std::string of_paths = kind == ValueKind::kFile ? "_files" : "_files -/";
  if (words.empty()) return of_paths;
  // A blank in front: it is called as it is. A colon in an action is escaped.
  return " _alternative \"names\\:name\\:" + of_words + "\" \"paths\\:path\\:" + of_paths + "\"";
}

std::string FishArguments(const OptionDoc& option) {
  const std::string words = WordsOf(option);
  switch (KindOf(option)) {
    case ValueKind::kNone:
      return "";
    case ValueKind::kFile:
      return words.empty() ? " -r -F" : " -r -F -a '" + words + "'";
    case ValueKind::kFolder:
      return " -x -a '" + words + (words.empty() ? "" : " ") + "(__fish_complete_directories)'";
    case ValueKind::kChoice:
    case ValueKind::kOther:
      return words.empty() ? " -x" : " -x -a '" + words + "'";
  }
  return "";
}

}  // namespace

std::string BashCompletion(const ToolDoc& doc) {
  const std::string function = Identifier(doc.info.name);
  std::vector<std::string> all_flags;
  std::string values;
  for (const OptionDoc& option : doc.options) {
    const std::vector<std::string> flags = Flags(option);
    all_flags.insert(all_flags.end(), flags.begin(), flags.end());
    if (flags.empty() || option.is_flag()) continue;
    values += "    " + Join(flags, " | ") + ") " + BashAction(option) + " ;;\n";
  }
  std::string text = "# bash completion for " + doc.info.name + ", generated " + kGenerated;
  text += function +
          "() {\n  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n  "
          "COMPREPLY=()\n";
  text += "  # --flag=value arrives as three words.\n";
  text +=
      "  if [[ $current == '=' ]]; then\n    current=''\n  elif [[ $previous == '=' ]]; then\n"
      "    previous=${COMP_WORDS[COMP_CWORD - 2]}\n  fi\n";
  text += "  case $previous in\n" + values + "  esac\n";
  text += "  if [[ $current == -* ]]; then\n    COMPREPLY=($(compgen -W '" + Join(all_flags, " ") +
          "' -- \"$current\"))\n    return\n  fi\n";
  if (TakesPaths(doc)) {
    text += "  compopt -o filenames 2>/dev/null\n  mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n";
  }
  return text + "}\ncomplete -F " + function + " " + doc.info.name + "\n";
}

std::string ZshCompletion(const ToolDoc& doc) {
  std::string text = "#compdef " + doc.info.name + "\n# zsh completion for " + doc.info.name +
                     ", generated " + kGenerated + "\n_arguments -s -S";
  for (const OptionDoc& option : doc.options) {
    const std::vector<std::string> flags = Flags(option);
    const std::string star = option.repeated ? "*" : "";
    if (!option.positional.empty()) {
      text += " \\\n  '" + star + ":" + option.positional + ":" + ZshAction(option) + "'";
    }
    if (flags.empty()) continue;
    std::vector<std::string> spelled;
    for (const std::string& flag : flags) {
      spelled.push_back(option.is_flag() ? flag : flag + (flag.starts_with("--") ? "=" : "+"));
    }
    const std::string exclusive = option.repeated || flags.size() == 1 ? star : "(" + Join(flags, " ") + ")";
    std::string rest = "[" + ZshEscape(PlainHelp(option)) + "]";
    if (!option.is_flag()) rest += ":" + ZshEscape(option.value_name) + ":" + ZshAction(option);
    text += " \\\n  ";
    text += spelled.size() == 1 ? "'" + exclusive + spelled[0] + rest + "'"
                                : "'" + exclusive + "'{" + Join(spelled, ",") + "}'" + rest + "'";
  }
  return text + "\n";
}

std::string FishCompletion(const ToolDoc& doc) {
  std::string text = "# fish completion for " + doc.info.name + ", generated " + kGenerated;
  if (!TakesPaths(doc)) text += "complete -c " + doc.info.name + " -f\n";
  for (const OptionDoc& option : doc.options) {
    if (option.is_positional()) continue;
    std::string line = "complete -c " + doc.info.name;
    for (const std::string& name : option.short_names) line += " -s " + name;
    for (const std::string& name : option.long_names) line += " -l " + name;
    text += line + FishArguments(option) + " -d '" + PlainHelp(option) + "'\n";
  }
  return text;
}

}  // namespace trainwright
