/// Work that a signal may end, after which what was done until then is still reported.
#pragma once

#include <exception>
#include <functional>

namespace trainwright {

/// \returns the Error of a signal that ended the work, or null
/// \throws what else the work throws
std::exception_ptr UntilStopped(const std::function<void()>& work);

}  // namespace trainwright
