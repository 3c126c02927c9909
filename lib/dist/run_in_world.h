/// The work of one process in a world that it leaves as the work ends.
#pragma once

#include <exception>
#include <functional>

#include "lib/base/exception.h"

namespace trainwright {

/// Closes the world after work that is done, with whatever exit status: so no rank leaves before the others
/// have what they need of it. Where the work throws, the others learn why and with which exit status.
/// \param world with Close and Fail as in C10dWorld
/// \returns what the work returns
/// \throws what the work or Close throws
template <typename LeavableWorld>
int RunInWorld(LeavableWorld* world, const std::function<int()>& work) {
  try {
    const int status = work();
    world->Close();
    return status;
  } catch (...) {
    const Error error = ErrorOf(std::current_exception());
    world->Fail(static_cast<int>(error.code()), error.what());
    throw;
  }
}

}  // namespace trainwright
