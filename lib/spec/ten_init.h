/// How the decays of a TEN model are written as trained numbers, and where they start, by name. Free of
/// torch; lib/nn/scan/eigen_decay.h computes with them.
#pragma once

#include <string>

namespace trainwright {

/// lru: modulus exp(-e^a) and angle e^w, with the input scaled to the state's variance. compat: modulus
/// sigmoid(a) and angle w.
enum class TenInit { kLru, kCompat };

/// The logarithm of a modulus is at most this, whatever is trained.
inline constexpr double kLargestLogModulus = -1e-6;

/// "lru", "compat".
/// \throws Error{kUsage} naming `flag`
TenInit ParseTenInit(const std::string& name, const std::string& flag);
std::string TenInitName(TenInit init);

}  // namespace trainwright
