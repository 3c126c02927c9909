/// When libzstd finds no memory: neither damage of its input nor a bug.
#pragma once

#include <cstddef>

namespace trainwright {

/// \param zstd_result of a function of libzstd that reports errors by its result
/// \throws std::bad_alloc when the error is that there is no memory
void ThrowIfNoMemory(size_t zstd_result);

}  // namespace trainwright
