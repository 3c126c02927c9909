/// Pieces of help texts put together, and folded within a width. Words are never broken: one that is longer
/// than a line gets a line of its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainwright {

/// What a line of a shell command that goes on ends in.
inline constexpr std::string_view kLineContinues = " \\";

std::string Join(const std::vector<std::string>& parts, const std::string& separator);

/// ASCII letters as capitals.
std::string Upper(std::string text);

/// One paragraph, each line after `indent` blanks.
std::string Fold(const std::string& text, size_t indent, size_t width);

/// One paragraph as the description after a name: `head` begins the first line. Where it ends a blank
/// before `column` at least, the text goes on there; all other lines begin at `column`.
std::string FoldBehind(const std::string& head, const std::string& text, size_t column, size_t width);

/// Paragraphs, separated by blank lines. Of lines that begin with two blanks, rows of a name and a
/// description that are too long are folded after their names, with the lines that continue them, and all
/// others stay.
std::string FoldParagraphs(const std::string& text, size_t indent, size_t width);

/// A shell command that does the same: lines end in a backslash, between words and never within quotes.
std::string FoldCommand(const std::string& command, size_t indent, size_t width);

}  // namespace trainwright
