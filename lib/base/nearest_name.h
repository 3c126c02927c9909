/// What somebody who wrote an unknown name may have meant.
#pragma once

#include <string>
#include <vector>

namespace trainwright {

/// The candidate nearest to `name` by edit distance, if it is near enough to be a likely slip; else empty.
std::string NearestName(const std::string& name, const std::vector<std::string>& candidates);

}  // namespace trainwright
