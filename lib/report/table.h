/// Aligned text tables for people: numbers to the right, words to the left, two blanks between columns.
#pragma once

#include <string>
#include <vector>

namespace trainwright {

class Table {
 public:
  /// \param header column titles; empty titles print no header line
  explicit Table(std::vector<std::string> header);
  /// \pre cells.size() is the number of columns
  void AddRow(std::vector<std::string> cells);
  /// All lines, each ended by a newline, no trailing blanks. A column is aligned to the right when each of
  /// its cells starts with a digit, a sign or a point, or is empty or "-".
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace trainwright
