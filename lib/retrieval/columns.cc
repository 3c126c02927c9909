#include "lib/retrieval/columns.h"

namespace trainwright {

std::vector<std::string_view> WordsOf(std::string_view line) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::vector<std::string_view> words;
  for (size_t begin = line.find_first_not_of(kSpace); begin != std::string_view::npos;) {
    const size_t end = line.find_first_of(kSpace, begin);
    words.push_back(line.substr(begin, end == std::string_view::npos ? end : end - begin));
    begin = line.find_first_not_of(kSpace, end);
  }
  return words;
}

std::vector<std::string_view> CellsOf(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::vector<std::string_view> cells;
  while (true) {
    const size_t tab = line.find('\t');
    cells.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return cells;
    line.remove_prefix(tab + 1);
  }
}

}  // namespace trainwright
