/// Whether a path lies below another. Pure and thread-safe.
#pragma once

#include <algorithm>
#include <filesystem>

namespace trainwright {

/// Also where both are the same.
/// \param inner,outer canonical, without slashes at the end
inline bool IsInside(const std::filesystem::path& inner, const std::filesystem::path& outer) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

}  // namespace trainwright
