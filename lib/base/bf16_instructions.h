/// How a kind of CPU is known to multiply values in bf16. Another way may be chosen: lib/spec/cpu_gemms.h.
#pragma once

namespace trainwright {

enum class Bf16Instructions {
  kNone,
  /// AVX-512-BF16 that is slower than fp32, in which GEMMs are then to be computed. Of Intel's processors
  /// without AMX, whose GEMMs reach 165 GFLOP/s in bf16 and 302 in fp32 (2 threads of a Xeon); AMD's are
  /// twice as fast in bf16.
  kSlow,
  kFast,
};

/// Of this CPU. Thread-safe.
Bf16Instructions DetectBf16Instructions();

}  // namespace trainwright
