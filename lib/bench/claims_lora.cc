// What the guide of the LoRA trainer claims.
#include "lib/bench/system_claims.h"

namespace trainwright {

SystemClaims LoraClaims() {
  SystemClaims described;
  described.claims = {
      {"lora", "low-memory loading: RAM -20 %", kMemoryMetric, 0.8, "--lora 16 --mmap off",
       "--lora 16 --mmap on", false},
      {"lora", "checkpointing: memory -20 %", kMemoryMetric, 0.8, "--lora 16",
       "--lora 16 --checkpoint-activations full", false},
      {"lora", "pinned memory: +5 %", kSpeedMetric, 1.05, "--pin off", "--pin on", true},
      {"lora", "cleanup every 10 steps: 5 % faster", kSpeedMetric, 1.05, "--empty-cache-every 1",
       "--empty-cache-every 10", true},
      {"lora", "batch 4 x 2 instead of 2 x 4: epoch 80 % faster", kSpeedMetric, 1.8, "--batch 2 --accum 4",
       "--batch 4 --accum 2", false},
      {"lora", "fewer evaluations, saves and logs: 20 % faster", kWholeRunMetric, 1.2,
       "--save-every 50 --log-every 2 --keep 2", "--save-every 100 --log-every 5 --keep 1", false},
      {"lora", "flash attention: +30-40 %", kSpeedMetric, 1.3, "--attn-backend math", "--attn-backend flash",
       true},
      {"lora", "compilation: +15-20 %", kSpeedMetric, 1.15, "", "--compile graph", false},
      {"lora", "fp16 before bf16 GPUs: +10 %", kSpeedMetric, 1.1, "--mixed-precision no",
       "--mixed-precision fp16", true},
      {"lora", "gradients off-loaded: memory -50 %", kMemoryMetric, 0.5, "", "--offload gradients", true},
      {"lora", "ZeRO-2: memory -30 %", kMemoryMetric, 0.7, "", "--zero 2", true},
  };
  return described;
}

}  // namespace trainwright
