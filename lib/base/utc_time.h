/// The time of day for records.
#pragma once

#include <string>

namespace trainwright {

/// "2026-11-21T15:04:05Z", now.
std::string Rfc3339Now();

}  // namespace trainwright
