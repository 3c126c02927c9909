// What the guide of rejection fine-tuning claims.
#include "lib/bench/system_claims.h"

namespace trainwright {

SystemClaims RftClaims() {
  SystemClaims described;
  described.claims = {
      {"rft", "fp16/bf16: 2-3x faster", kSpeedMetric, 2, "--mixed-precision no", "--mixed-precision bf16",
       false},
      {"rft", "fp16/bf16: memory -40 %", kMemoryMetric, 0.6, "--mixed-precision no", "--mixed-precision bf16",
       false},
      {"rft", "checkpointing off: 20-30 % faster", kSpeedMetric, 1.2, "--checkpoint-activations full",
       "--checkpoint-activations no", false},
      {"rft", "4 workers, pinned, prefetch 2: 1.5-2x", kSpeedMetric, 1.5, "--workers 0 --pin off",
       "--workers 4 --pin on --prefetch 2", false},
      {"rft", "compilation: 1.2-1.5x", kSpeedMetric, 1.2, "", "--compile graph", false},
      {"rft", "TF32: 1.2-1.5x", kSpeedMetric, 1.2, "--tf32 off", "--tf32 on", true},
      {"rft", "all together: 3-5x a epoch", kSpeedMetric, 3, "--preset rft-baseline", "--preset rft-fast",
       false},
  };
  return described;
}

}  // namespace trainwright
