#include "lib/report/table.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {
namespace {

// Columns on a terminal, counting code points; wide East Asian characters are not looked up.
size_t WidthOf(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool IsNumeric(const std::string& cell) {
  return cell.empty() || cell == "-" || std::string("+-.0123456789").find(cell.front()) != std::string::npos;
}

}  // namespace

Table::Table(std::vector<std::string> header) {
  rows_.push_back(std::move(header));
}

void Table::AddRow(std::vector<std::string> cells) {
  TRAINWRIGHT_CHECK(cells.size() == rows_.front().size());
  rows_.push_back(std::move(cells));
}

std::string Table::ToString() const {
  const size_t columns = rows_.front().size();
  std::vector<size_t> widths(columns, 0);
  std::vector<bool> right(columns, rows_.size() > 1);
  for (size_t row = 0; row < rows_.size(); ++row) {
    for (size_t column = 0; column < columns; ++column) {
      widths[column] = std::max(widths[column], WidthOf(rows_[row][column]));
      if (row > 0 && !IsNumeric(rows_[row][column])) right[column] = false;
    }
  }
  const bool has_header = std::any_of(rows_.front().begin(), rows_.front().end(),
                                      [](const auto& title) { return !title.empty(); });
  std::string text;
  for (size_t row = has_header ? 0 : 1; row < rows_.size(); ++row) {
    std::string line;
    for (size_t column = 0; column < columns; ++column) {
      const std::string& cell = rows_[row][column];
      const std::string padding(widths[column] - WidthOf(cell), ' ');
      line += (column == 0 ? "" : "  ") + (right[column] ? padding + cell : cell + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace trainwright
