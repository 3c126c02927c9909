/// Dates as Python's datetime.strftime writes them in the C locale.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace trainwright::jinja {

/// \throws Problem for a directive that is not supported
std::string FormatTime(std::string_view format, std::chrono::sys_seconds time);

}  // namespace trainwright::jinja
