/// Host memory that the refusing device copies from and to without anybody waiting.
#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>

namespace trainwright::test {

c10::Allocator* PinnedAllocator();
bool IsPinned(const void* address);

}  // namespace trainwright::test
