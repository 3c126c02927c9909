#include "lib/report/markup.h"

namespace trainwright {

std::string EscapeMarkup(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\n':
      case '\t':
        escaped += ' ';
        break;
      default:
        escaped += static_cast<unsigned char>(c) < 0x20 ? "\uFFFD" : std::string(1, c);
    }
  }
  return escaped;
}

}  // namespace trainwright
