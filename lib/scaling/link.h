/// What connects the ranks of a run, reduced to two numbers, and the words in which users give them.
#pragma once

#include <string>

namespace trainwright {

struct Link {
  double bytes_per_s = 0;  ///< that a rank sends and, at the same time, receives; above 0
  double latency_s = 0;    ///< of a message, from its sender's call to its receiver's; at least 0
};

/// "50GB", "100MiB" (bytes a second), or "400Gbit", "100Mbit" (bits a second) -> bytes a second.
/// \throws Error{kUsage} naming `flag`
double ParseBandwidth(const std::string& text, const std::string& flag);

/// "20us", "0.5ms", "1s" -> seconds.
/// \throws Error{kUsage} naming `flag`
double ParseLatency(const std::string& text, const std::string& flag);

}  // namespace trainwright
