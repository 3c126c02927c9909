/// U+2581, which stands for a space in vocabularies.
#pragma once

#include <string>
#include <string_view>

namespace trainwright {

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

/// `text` with ' ' for each U+2581, after what is in `out`.
inline void AppendWithSpaces(std::string_view text, std::string* out) {
  for (size_t mark; (mark = text.find(kSpaceMark)) != std::string_view::npos;
       text.remove_prefix(mark + kSpaceMark.size())) {
    out->append(text.substr(0, mark)).push_back(' ');
  }
  out->append(text);
}
inline std::string WithSpaces(std::string_view text) {
  std::string spaced;
  AppendWithSpaces(text, &spaced);
  return spaced;
}

/// `text` with U+2581 for each ' '.
inline std::string WithMarks(std::string_view text) {
  std::string marked;
  for (const char byte : text) {
    if (byte == ' ') {
      marked.append(kSpaceMark);
    } else {
      marked.push_back(byte);
    }
  }
  return marked;
}

}  // namespace trainwright
