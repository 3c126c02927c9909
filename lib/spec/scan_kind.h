/// How a diagonal recurrence is evaluated, by name. Free of torch; lib/nn/scan/diagonal_scan.h computes it.
#pragma once

#include <string>

namespace trainwright {

/// fused: our kernels. chunked: torch's operators, all chunks at once. sequential: torch's operators, a row
/// at a time, which is what a plain loop over time costs. All give the same results up to rounding.
enum class ScanKind { kFused, kChunked, kSequential };

/// "sequential", "chunked", "fused".
/// \throws Error{kUsage} naming `flag`
ScanKind ParseScanKind(const std::string& name, const std::string& flag);
std::string ScanKindName(ScanKind kind);

}  // namespace trainwright
