/// The mark that some programs, mostly those of Windows, write before a text and that does not belong to it.
#pragma once

#include <string_view>

namespace trainwright {

/// `text` without a mark of UTF-8 at its beginning.
inline std::string_view WithoutByteOrderMark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

/// Whether the beginning of a text has a mark of UTF-16, of either byte order.
inline bool HasUtf16Mark(std::string_view start) {
  return start.starts_with("\xFF\xFE") || start.starts_with("\xFE\xFF");
}

}  // namespace trainwright
