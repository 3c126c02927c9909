#include "lib/io/zstd_memory.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <new>

namespace trainwright {

void ThrowIfNoMemory(size_t zstd_result) {
  if (ZSTD_isError(zstd_result) && ZSTD_getErrorCode(zstd_result) == ZSTD_error_memory_allocation)
    throw std::bad_alloc();
}

}  // namespace trainwright
