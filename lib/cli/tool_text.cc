#include "lib/cli/tool_text.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/cli/text_folding.h"

namespace trainwright {
namespace {

constexpr std::string_view kHeading = "# ";
constexpr std::string_view kLiteral = "  ";

[[noreturn]] void Refuse(const std::string& problem, const std::string& place) {
  throw Error(ErrorCode::kInternal, "text of a man page", problem, place);
}

/// Cuts the next line off `rest`, without its newline.
std::string_view NextLine(std::string_view* rest) {
  const size_t end = rest->find('\n');
  const std::string_view line = rest->substr(0, end);
  rest->remove_prefix(end == std::string_view::npos ? rest->size() : end + 1);
  return line;
}

void TrimBlankLines(std::string* text) {
  text->erase(0, std::min(text->find_first_not_of('\n'), text->size()));
  text->erase(text->find_last_not_of('\n') + 1);
}

/// The lines of each paragraph joined; blank lines and lines behind two blanks stay.
std::string JoinParagraphs(std::string_view lines) {
  std::string text;
  bool in_paragraph = false;
  while (!lines.empty()) {
    const std::string_view line = NextLine(&lines);
    const bool is_prose = !line.empty() && !line.starts_with(kLiteral);
    if (!text.empty()) text += in_paragraph && is_prose ? ' ' : '\n';
    text += line;
    in_paragraph = is_prose;
  }
  TrimBlankLines(&text);
  return text;
}

std::vector<ToolExample> ParseExamples(std::string_view lines) {
  std::vector<ToolExample> examples;
  bool wants_explanation = true, continued = false;
  while (!lines.empty()) {
    std::string_view line = NextLine(&lines);
    if (line.empty()) continue;
    if (!line.starts_with(kLiteral)) {
      if (wants_explanation) examples.emplace_back();
      wants_explanation = false;
      std::string& explanation = examples.back().explanation;
      explanation.append(explanation.empty() ? "" : " ").append(line);
      continue;
    }
    if (wants_explanation && !continued) Refuse("a command has no explanation", std::string(line));
    line.remove_prefix(kLiteral.size());
    std::string& command = examples.back().command;
    wants_explanation = true;
    continued = line.ends_with(kLineContinues);
    if (continued) line.remove_suffix(kLineContinues.size());
    command.append(command.empty() ? "" : " ").append(line);
  }
  if (!wants_explanation) Refuse("an example has no command", examples.back().explanation);
  return examples;
}

}  // namespace

ToolText ParseToolText(std::string_view text) {
  std::vector<ToolSection> parts;
  while (!text.empty()) {
    const std::string_view line = NextLine(&text);
    if (line.starts_with(kHeading)) {
      const std::string title(line.substr(kHeading.size()));
      const auto has_title = [&](const ToolSection& part) { return part.title == title; };
      if (title.empty() || std::any_of(parts.begin(), parts.end(), has_title))
        Refuse("a heading is empty or comes twice", title);
      parts.push_back({title, ""});
    } else if (!parts.empty()) {
      parts.back().text.append(line).append("\n");
    } else if (!line.empty()) {
      Refuse("text before the first heading", std::string(line));
    }
  }
  ToolText result;
  for (ToolSection& part : parts) {
    if (part.title == "EXAMPLES") {
      result.examples = ParseExamples(part.text);
    } else if (part.title == "DESCRIPTION") {
      result.description = JoinParagraphs(part.text);
    } else {
      result.sections.push_back({std::move(part.title), JoinParagraphs(part.text)});
    }
  }
  return result;
}

}  // namespace trainwright
