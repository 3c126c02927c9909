// What the guide of rejection fine-tuning claims, of adapters on SmolLM2-360M and samples of 128 tokens.
#include "lib/bench/system_claims.h"

namespace trainwright {
namespace {

constexpr char kShape[] = "--model smollm2-360m --lora 16 --lora-alpha 64 --seq 128";
constexpr char kBaseline[] = "--model smollm2-360m --lora 16 --lora-alpha 64 --seq 128 --batch 32";

}  // namespace

SystemClaims RftClaims() {
  SystemClaims described;
  described.claims = {
      AtGuideSize(kBaseline, {"C2", "fp16/bf16: 2-3x faster", kSpeedMetric, 2, "--mixed-precision no",
                              "--mixed-precision bf16", false}),
      AtGuideSize(kBaseline, {"C2", "fp16/bf16: memory -40 %", kMemoryMetric, 0.6, "--mixed-precision no",
                              "--mixed-precision bf16", false}),
      AtGuideSize(kBaseline, {"C4", "checkpointing off: 20-30 % faster", kSpeedMetric, 1.2,
                              "--checkpoint-activations full", "--checkpoint-activations no", false}),
      CostOf(AtGuideSize(kBaseline, {"C4", "checkpointing off: memory +30-40 %", kMemoryMetric, 1.4,
                                     "--checkpoint-activations full", "--checkpoint-activations no", false})),
      AtGuideSize(kBaseline, {"C5", "4 workers, pinned, prefetch 2: 1.5-2x", kDataWaitMetric, 1 / 1.5,
                              "--workers 0 --pin off", "--workers 4 --pin on --prefetch 2", false}),
      AtGuideSize(kBaseline, {"C7", "compilation: 1.2-1.5x", kSpeedMetric, 1.2, "", "--compile graph", true}),
      AtGuideSize(kBaseline, {"C12", "TF32: 1.2-1.5x", kSpeedMetric, 1.2, "--tf32 off", "--tf32 on", true}),
      AtGuideSize(kShape, {"C19", "all together: 3-5x a epoch", kSpeedMetric, 3, "--preset rft-baseline",
                           "--preset rft-fast", false}),
  };
  described.contradictions = {
      {"",
       "50 steps of warm-up and 50 between logs exceed the 42 steps of 16 x 4, 3 epochs, some 900 examples"},
      {"",
       "gradient_clip_norm is no option of the trainer, whose run fails; fp16_opt_level O2 is Apex's alone"},
      {"", "checkpoints of the model alone cannot be resumed"},
      {"checkpointing off", "20-30 % of the speed; by the guide of lora 5 %"},
      {"all together",
       "the effective batch doubles (32 to 64) with everything else: compare samples a second"},
      {"all together", kSharesDoNotCompose},
  };
  return described;
}

}  // namespace trainwright
