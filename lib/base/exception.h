/// Any exception as the suite's own.
#pragma once

#include <exception>

#include "lib/base/error.h"

namespace trainwright {

/// An Error as it is; of others what their kind and the first line of their message report. What is about
/// memory in LibTorch's exceptions is found before (lib/device/memory_error.h); their other lines are a stack
/// trace.
/// \param failure not null
Error ErrorOf(const std::exception_ptr& failure);

}  // namespace trainwright
