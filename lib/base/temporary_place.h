/// Where temporary files go. Thread-safe while nobody writes the environment.
#pragma once

#include <cstdlib>
#include <string>

namespace trainwright {

/// $TMPDIR; where it is unset or empty, `usual`.
inline std::string PlaceForTemporaryFiles(const std::string& usual) {
  const char* const asked = std::getenv("TMPDIR");
  return asked != nullptr && *asked != '\0' ? asked : usual;
}

}  // namespace trainwright
