#include "lib/cli/text_folding.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <vector>

namespace trainwright {
namespace {

constexpr size_t kStep = 2;

size_t Columns(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// Words of a shell command; what is quoted, or escaped, is of one word.
std::vector<std::string> WordsOf(const std::string& command) {
  std::vector<std::string> words(1);
  char quote = 0;
  for (size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == '\\' && quote != '\'' && i + 1 < command.size()) {
      words.back() += command.substr(i++, 2);
      continue;
    }
    if (quote == 0 && c == ' ') {
      if (!words.back().empty()) words.emplace_back();
      continue;
    }
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    }
    words.back() += c;
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

/// Where the description of a row begins: behind the blanks, two at least, behind its name; 0: it has none.
size_t DescriptionColumn(const std::string& row) {
  const size_t name = row.find_first_not_of(' ');
  const size_t gap = name == std::string::npos ? name : row.find("  ", name);
  return gap == std::string::npos ? 0 : std::min(row.find_first_not_of(' ', gap), row.size());
}

/// Lines that begin with two blanks: a row, and what continues its description.
std::string FoldRow(const std::vector<std::string>& lines, size_t indent, size_t width) {
  const size_t column = DescriptionColumn(lines[0]);
  const bool fits = std::all_of(lines.begin(), lines.end(),
                                [&](const std::string& line) { return indent + Columns(line) <= width; });
  std::string out;
  const size_t name_begin = lines[0].find_first_not_of(' ');
  const size_t name_end = std::min(lines[0].find(' ', name_begin), lines[0].size());
  if (!fits && column == 0 && lines[0][name_end - 1] == ':') {
    // "name: description": what follows is a step further in.
    const std::string text = Fold(lines[0], indent + name_begin + kStep, width);
    return text.substr(std::min(kStep, text.size()));
  }
  if (fits || column == 0) {
    for (const std::string& line : lines) out += std::string(indent, ' ') + line + "\n";
    return out;
  }
  std::string text = lines[0].substr(column);
  for (size_t i = 1; i < lines.size(); ++i) text += " " + lines[i];
  std::string name = lines[0].substr(0, column);
  name.erase(name.find_last_not_of(' ') + 1);
  return FoldBehind(std::string(indent, ' ') + name, text, indent + column, width);
}

}  // namespace

std::string Join(const std::vector<std::string>& parts, const std::string& separator) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

std::string Upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string Fold(const std::string& text, size_t indent, size_t width) {
  return FoldBehind(std::string(indent, ' '), text, indent, width);
}

std::string FoldBehind(const std::string& head, const std::string& text, size_t column, size_t width) {
  std::istringstream words(text);
  std::string out, word, line = head;
  const size_t head_end = head.find_last_not_of(' ') + 1;
  if (head_end > 0 && Columns(head) + 1 > column) {
    out = head.substr(0, head_end) + "\n";
    line.clear();
  }
  line += std::string(column - std::min(column, Columns(line)), ' ');
  bool empty = true;
  while (words >> word) {
    if (!empty && Columns(line) + 1 + Columns(word) > width) {
      out += line + "\n";
      line = std::string(column, ' ');
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
  }
  if (!empty) return out + line + "\n";
  line.erase(line.find_last_not_of(' ') + 1);
  return line.empty() ? out : out + line + "\n";
}

std::string FoldParagraphs(const std::string& text, size_t indent, size_t width) {
  std::istringstream lines(text);
  std::string out, paragraph, line;
  std::vector<std::string> row;
  const auto flush = [&] {
    if (!paragraph.empty()) out += Fold(paragraph, indent, width);
    if (!row.empty()) out += FoldRow(row, indent, width);
    paragraph.clear();
    row.clear();
  };
  while (std::getline(lines, line)) {
    const bool kept = line.starts_with("  ");
    if (line.empty()) {
      flush();
      out += "\n";
    } else if (!kept) {
      if (!row.empty()) flush();
      paragraph += (paragraph.empty() ? "" : " ") + line;
    } else {
      const size_t column = row.empty() ? 0 : DescriptionColumn(row[0]);
      if (column == 0 || line.find_first_not_of(' ') < column) flush();
      row.push_back(line);
    }
  }
  flush();
  return out;
}

std::string FoldCommand(const std::string& command, size_t indent, size_t width) {
  std::string out, line;
  for (const std::string& word : WordsOf(command)) {
    if (!line.empty() && indent + Columns(line) + 1 + Columns(word) + kLineContinues.size() > width) {
      out += std::string(indent, ' ') + line + std::string(kLineContinues) + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return out + std::string(indent, ' ') + line + "\n";
}

}  // namespace trainwright
