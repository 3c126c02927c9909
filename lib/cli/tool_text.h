/// The prose of a tool's man page and long help: what the tool does, its sections, its examples.
///
/// It is written in a text file, tools/text/<tool>.txt, which the build embeds, and not in string literals:
///
///     # DESCRIPTION
///     A paragraph, over as many lines as it needs. Blank lines come between paragraphs.
///
///     # FILES
///       a line after two blanks is shown as it is
///
///     # EXAMPLES
///     What the example shows.
///
///       command --option | other command
///
/// DESCRIPTION and EXAMPLES are what they say; every other heading is a section of its own, in this order.
/// A command goes on in the next line where its line ends in a blank and a backslash.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainwright {

struct ToolExample {
  std::string command;  ///< a shell line that works as written in a folder with the example data; tested
  std::string explanation;
};

/// A titled section of the man page; paragraphs are separated by blank lines, lines that start with two
/// spaces are shown as they are.
struct ToolSection {
  std::string title;
  std::string text;
};

struct ToolText {
  std::string description;            ///< paragraphs, as in a section
  std::vector<ToolSection> sections;  ///< extra man page sections: FILES, INPUT FORMATS, ...
  std::vector<ToolExample> examples;
};

/// Reads a text file: the lines of a paragraph become one, and so do the lines of a command.
///
/// \param text the whole file, UTF-8
/// \throws Error (kInternal) for text before the first heading, a heading that is empty or comes twice, and
///     an example without a command or an explanation
ToolText ParseToolText(std::string_view text);

}  // namespace trainwright
