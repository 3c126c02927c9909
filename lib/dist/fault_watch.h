/// What waits between ranks look at, so that none outlasts the ranks it waits for. The training thread's.
#pragma once

#include <chrono>
#include <string>

#include "lib/base/error.h"

namespace trainwright {

/// How long c10d may take for a call that a watch looks after: how long a living rank takes is no business
/// of the transport's. It hands milliseconds on as an int.
inline constexpr std::chrono::hours kNearlyEndless{7 * 24};

class FaultWatch {
 public:
  virtual ~FaultWatch() = default;
  /// Called again and again during a wait; quick.
  /// \throws Error{kIo} once a rank is known to be at fault, naming it
  virtual void Check() = 0;
  /// What to do where the transport itself broke: waits for the verdict on the rank that caused it.
  /// \param problem in the transport's words
  /// \returns the Error{kIo} to throw
  virtual Error Explain(const std::string& problem) = 0;
};

}  // namespace trainwright
