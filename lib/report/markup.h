/// Text inside SVG and HTML.
#pragma once

#include <string>
#include <string_view>

namespace trainwright {

/// Text between tags or in an attribute: one line, as ends of lines become blanks. What XML cannot hold
/// becomes U+FFFD.
std::string EscapeMarkup(std::string_view text);

}  // namespace trainwright
