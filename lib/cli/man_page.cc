#include "lib/cli/man_page.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <sstream>

#include "lib/base/version.h"
#include "lib/cli/help_text.h"
#include "lib/cli/text_folding.h"

namespace trainwright {
namespace {

constexpr size_t kSourceWidth = 76;
constexpr char kUngrouped[] = "Options";  // CLI11's name for the group of options that were given none

/// One code point of UTF-8 from text[*at], which moves behind it; a stray byte stands for itself.
uint32_t NextCodePoint(const std::string& text, size_t* at) {
  const auto lead = static_cast<unsigned char>(text[*at]);
  const size_t length = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  uint32_t code = length == 1 ? lead : lead & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length && *at + i < text.size(); ++i) {
    code = code << 6 | (static_cast<unsigned char>(text[*at + i]) & 0x3F);
  }
  *at += length;
  return code;
}

void AppendCharacter(uint32_t code, std::string* out) {
  switch (code) {
    case '\\':
      *out += "\\e";
      return;
    case '\'':
      *out += "\\(aq";
      return;
    case '`':
      *out += "\\(ga";
      return;
    case '^':
      *out += "\\(ha";
      return;
    case '~':
      *out += "\\(ti";
      return;
    default:
      break;
  }
  if (code < 0x80) {
    *out += static_cast<char>(code);
  } else {
    std::array<char, 16> name;
    std::snprintf(name.data(), name.size(), "\\[u%04X]", code);
    *out += name.data();
  }
}

/// Text that is typed or shown as it stands: every hyphen is a minus sign.
std::string EscapeLiteral(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const uint32_t code = NextCodePoint(text, &at);
    if (code == '-') {
      out += "\\-";
    } else {
      AppendCharacter(code, &out);
    }
  }
  if (!out.empty() && (out[0] == '.' || out[0] == '\\')) out = "\\&" + out;
  return out;
}

std::string Bold(const std::string& text) {
  return "\\fB" + EscapeLiteral(text) + "\\fR";
}
std::string Italic(const std::string& text) {
  return "\\fI" + EscapeLiteral(text) + "\\fR";
}

/// A new source line for each sentence and at the width, never one that roff takes for a request.
std::string FillSource(const std::string& escaped) {
  std::istringstream words(escaped);
  std::string out, line, word;
  const auto flush = [&] {
    if (line.empty()) return;
    if (line[0] == '.' || line[0] == '\'') line = "\\&" + line;
    out += line + "\n";
    line.clear();
  };
  bool sentence_ended = false;
  while (words >> word) {
    if (sentence_ended || line.size() + 1 + word.size() > kSourceWidth) flush();
    line += (line.empty() ? "" : " ") + word;
    const bool abbreviation = word == "e.g." || word == "i.e.";
    sentence_ended = !abbreviation && (word.ends_with('.') || word.ends_with('?') || word.ends_with(".)")) &&
                     !word.ends_with("..");
  }
  flush();
  return out;
}

std::string Paragraphs(const std::string& text, const std::string& separator) {
  std::istringstream lines(text);
  std::string out, paragraph, line, literal;
  const auto begin_block = [&] {
    if (!out.empty()) out += separator + "\n";
  };
  const auto flush = [&] {
    if (!paragraph.empty()) {
      begin_block();
      out += FillSource(EscapeRoff(paragraph));
      paragraph.clear();
    }
    if (!literal.empty()) {
      begin_block();
      out += ".EX\n" + literal + ".EE\n";
      literal.clear();
    }
  };
  while (std::getline(lines, line)) {
    const bool is_literal = line.starts_with("  ");
    if (line.empty() || (is_literal ? !paragraph.empty() : !literal.empty())) flush();
    if (is_literal) {
      literal += EscapeLiteral(line) + "\n";
    } else if (!line.empty()) {
      paragraph += (paragraph.empty() ? "" : " ") + line;
    }
  }
  flush();
  return out;
}

std::string OptionTag(const OptionDoc& option) {
  if (option.is_positional()) return Italic(option.positional) + (option.repeated ? "..." : "");
  std::string tag;
  for (const std::string& name : option.short_names) tag += (tag.empty() ? "" : ", ") + Bold("-" + name);
  for (const std::string& name : option.long_names) tag += (tag.empty() ? "" : ", ") + Bold("--" + name);
  return option.is_flag() ? tag : tag + " " + Italic(option.value_name);
}

std::string OptionEntry(const OptionDoc& option) {
  std::string text = ".TP\n" + OptionTag(option) + "\n" + Paragraphs(option.help, ".IP");
  std::string notes = OptionNotes(option);
  if (!notes.empty()) {
    notes[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(notes[0])));
    text += FillSource(EscapeRoff(notes + "."));
  }
  return text;
}

// "pack(1)" as man pages refer to each other.
std::string Reference(const std::string& page, bool last) {
  const size_t open = page.find('(');
  if (open == std::string::npos) return FillSource(EscapeRoff(page + (last ? "" : ",")));
  return ".BR " + EscapeLiteral(page.substr(0, open)) + " " + page.substr(open) + (last ? "" : " ,") + "\n";
}

std::string Synopsis(const ToolDoc& doc) {
  std::string text = ".B " + EscapeLiteral(doc.info.name) + "\n";
  std::istringstream words(SynopsisArguments(doc));
  std::string word, line;
  while (words >> word) {
    std::string escaped;
    if (word[0] == '-') {
      escaped = Bold(word);
    } else {
      const size_t begin = word.find_first_not_of('['), end = word.find_first_of("].", begin);
      const std::string name = word.substr(begin, end == std::string::npos ? end : end - begin);
      escaped = word.substr(0, begin) + Italic(name) + (end == std::string::npos ? "" : word.substr(end));
    }
    line += (line.empty() ? "" : " ") + escaped;
  }
  return text + line + "\n";
}

}  // namespace

std::string EscapeRoff(const std::string& text) {
  std::string out;
  bool code_span = false;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const uint32_t code = NextCodePoint(text, &at);
    if (code == '`') {
      code_span = !code_span;
      out += code_span ? "\\fB" : "\\fR";
    } else if (code == '-') {
      const bool word_inside = begin > 0 && std::isalnum(static_cast<unsigned char>(text[begin - 1])) != 0 &&
                               at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
      // Inside a flag such as --max-tokens every hyphen is typed.
      const size_t word = text.find_last_of(" \n(`", begin == 0 ? 0 : begin - 1);
      const size_t word_begin = word == std::string::npos ? 0 : word + 1;
      const bool in_flag = text.compare(word_begin, 1, "-") == 0;
      out += code_span || !word_inside || in_flag ? "\\-" : "-";
    } else {
      AppendCharacter(code, &out);
    }
  }
  return out;
}

std::string ManPage(const ToolDoc& doc, const std::string& date) {
  const ToolInfo& info = doc.info;
  std::string text = ".\\\" Generated by clidoc from tools/" + info.name +
                     "_options.cc; scripts/update_generated.sh writes it again.\n";
  text += ".TH " + Upper(EscapeLiteral(info.name)) + " 1 " + date +
          " \"Trainwright " TRAINWRIGHT_VERSION "\" \"User Commands\"\n";
  text += ".SH NAME\n" + EscapeLiteral(info.name) + " \\- " + EscapeRoff(info.summary) + "\n";
  text += ".SH SYNOPSIS\n" + Synopsis(doc);
  text += ".SH DESCRIPTION\n" + Paragraphs(info.text.description, ".PP");
  text += ".SH OPTIONS\n";
  for (const OptionDoc& option : doc.options) {
    if (option.is_positional()) text += OptionEntry(option);
  }
  for (const std::string& group : GroupsOf(doc)) {
    if (group != kUngrouped) text += ".SS " + EscapeRoff(group) + "\n";
    for (const OptionDoc& option : doc.options) {
      if (option.group == group && !option.is_positional()) text += OptionEntry(option);
    }
  }
  const auto extra_section = [&](const ToolSection& section) {
    text += ".SH " + Upper(EscapeRoff(section.title)) + "\n" + Paragraphs(section.text, ".PP");
  };
  // These stand at the end, the first behind what the options have.
  const auto is_environment = [](const ToolSection& section) {
    return Upper(section.title) == "ENVIRONMENT";
  };
  const auto is_files = [](const ToolSection& section) { return Upper(section.title) == "FILES"; };
  for (const ToolSection& section : info.text.sections) {
    if (!is_environment(section) && !is_files(section)) extra_section(section);
  }
  text += ".SH CONFIGURATION\n" + Paragraphs(ConfigurationText(), ".PP");
  if (!info.text.examples.empty()) {
    text += ".SH EXAMPLES\n";
    bool first = true;
    for (const ToolExample& example : info.text.examples) {
      if (!first) text += ".PP\n";
      first = false;
      text += FillSource(EscapeRoff(example.explanation)) + ".PP\n.in +4n\n.EX\n" +
              EscapeLiteral(example.command) + "\n.EE\n.in\n";
    }
  }
  text += ".SH EXIT STATUS\n";
  for (const auto& [status, meaning] : ExitStatusTable(info.filter)) {
    text += ".TP\n.B " + status + "\n" + FillSource(EscapeRoff(meaning + "."));
  }
  text += ".SH ENVIRONMENT\n";
  for (const OptionDoc& option : doc.options) {
    if (option.environment.empty()) continue;
    const std::string same = option.is_positional() ? option.positional : "--" + option.key;
    text += ".TP\n.B " + option.environment + "\n" + FillSource("Default for " + Bold(same) + ".");
  }
  text += ".TP\n.B TRAINWRIGHT_CONFIG\n" + FillSource("Default for " + Bold("--config") + ".");
  text += ".TP\n.B NO_COLOR\n" + FillSource("When not empty, the progress bar has no colour.");
  text += ".TP\n.B TERM\n" + FillSource("No progress bar is drawn when it is unset or " + Bold("dumb") + ".");
  text +=
      ".TP\n.B COLUMNS\n" + FillSource("Width of the progress bar where the terminal does not report it.");
  for (const ToolSection& section : info.text.sections) {
    if (is_environment(section)) text += ".PP\n" + Paragraphs(section.text, ".PP");
  }
  for (const ToolSection& section : info.text.sections) {
    if (is_files(section)) extra_section(section);
  }
  if (!info.see_also.empty()) {
    text += ".SH SEE ALSO\n";
    for (size_t i = 0; i < info.see_also.size(); ++i)
      text += Reference(info.see_also[i], i + 1 == info.see_also.size());
  }
  return text;
}

}  // namespace trainwright
