/// What shares users ask for of the sets of a mixture, as the integers that the order is made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainwright {

/// "0.7,0.3" or "7,3": each share divided by their sum, times 2^32, rounded.
/// \throws Error{kUsage} naming --data-weights on what is no number above 0, on another number of shares than
/// `sets`, and on a share that rounds to 0
std::vector<uint64_t> ParseMixtureWeights(const std::string& text, size_t sets);

}  // namespace trainwright
