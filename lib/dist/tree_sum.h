/// The order in which the parts of a step are added up under --exact-world: a balanced binary tree of
/// neighbours, which is the same however the parts are spread over ranks.
#pragma once

#include <cstdint>

namespace trainwright {

/// Adds up parts in place, neighbours first; what is left in part 0 is the sum of all. Of n parts, a power of
/// two, the first half and the second are each summed likewise and then added; of any other number the first
/// half is as large as the largest power of two below it.
/// \param parts at least 1
/// \param add called as add(i, j), i < j: part i becomes the sum of both, part j is not asked for again
template <typename Add>
void AddAsTree(int64_t parts, const Add& add) {
  for (int64_t stride = 1; stride < parts; stride *= 2) {
    for (int64_t i = 0; i + stride < parts; i += 2 * stride) add(i, i + stride);
  }
}

}  // namespace trainwright
