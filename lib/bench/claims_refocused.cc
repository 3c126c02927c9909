// What the guide of ReFocused-AI claims, and its suite.
#include "lib/bench/system_claims.h"

namespace trainwright {

SystemClaims RefocusedClaims() {
  SystemClaims described;
  described.claims = {
      {"refocused", "mixed precision: memory -50 %", kMemoryMetric, 0.5, "--mixed-precision no",
       "--mixed-precision bf16", false},
      {"refocused", "mixed precision: 2x throughput", kSpeedMetric, 2, "--mixed-precision no",
       "--mixed-precision bf16", false},
      {"refocused", "batch 1 -> 4: utilisation 2-4x", kSpeedMetric, 2, "--batch 1", "--batch 4", false},
      {"refocused", "4 workers: loading 20-50 % faster", kDataWaitMetric, 1 / 1.2, "--workers 0",
       "--workers 4", false},
      {"refocused", "cheap loop: Python overhead -5-15 %", kWholeRunMetric, 1.05, "--log-every 1",
       "--log-every 25", false},
      {"refocused", "background upload: checkpoint blocks 90 % less", kSpeedMetric, 1.5,
       "--save-every 2 --async-save off", "--save-every 2 --async-save on", false},
  };
  described.suite = {
      {"loader", "--workers 0 --pin off --prefetch 2"},
      {"loader", "--workers 2 --pin on --prefetch 2"},
      {"loader", "--workers 4 --pin on --prefetch 4"},
      {"precision", "--mixed-precision no"},
      {"precision", "--mixed-precision fp16"},
      {"precision", "--mixed-precision bf16"},
      {"accumulation", "--mixed-precision bf16 --batch 4 --accum 1"},
      {"accumulation", "--mixed-precision bf16 --batch 2 --accum 2"},
      {"accumulation", "--mixed-precision bf16 --batch 1 --accum 4"},
      {"memory", "--mixed-precision no --batch 1 --accum 1"},
      {"memory", "--mixed-precision no --batch 2 --accum 2"},
      {"memory", "--mixed-precision bf16 --batch 2 --accum 2"},
      {"memory", "--mixed-precision bf16 --batch 4 --accum 4"},
  };
  return described;
}

}  // namespace trainwright
