// What the guide of the LoRA trainer claims.
#include "lib/bench/system_claims.h"

namespace trainwright {
namespace {

// The guide trains adapters on a TinyLlama in 4 bits, in steps of 8 samples of one document each.
constexpr char kTinyLlama[] =
    "--model tinyllama-1.1b --quant nf4 --lora 16 --lora-alpha 32 --lora-dropout 0.05 "
    "--lora-targets q_proj,k_proj,v_proj,o_proj --packing off --seq 1024 --batch 2 --accum 4";
// The four epochs of the guide: 171 examples, of which its code holds out 5 %. What evaluations, saves and
// records cost shows in the whole of them alone.
constexpr char kFourEpochs[] =
    "--model tinyllama-1.1b --quant nf4 --lora 16 --lora-alpha 32 --lora-dropout 0.05 "
    "--lora-targets q_proj,k_proj,v_proj,o_proj --packing off --seq 1024 --batch 4 --accum 2 --steps 84";
constexpr char kAnEpoch[] =
    "--model tinyllama-1.1b --quant nf4 --lora 16 --lora-alpha 32 --lora-dropout 0.05 "
    "--lora-targets q_proj,k_proj,v_proj,o_proj --packing off --seq 1024 --batch 4 --accum 2 --steps 21";
constexpr char kOften[] = "--lora 16 --eval-split 0.05 --eval-every 5 --save-every 50 --log-every 2 --keep 2";
constexpr char kSeldom[] =
    "--lora 16 --eval-split 0.05 --eval-every 20 --save-every 100 --log-every 5 --keep 1";

/// What the guide says that a run on its GPU reaches: a value, on whichever side of 1.
Claim Reached(Claim claim) {
  claim.absolute = claim.cost = true;
  return claim;
}

std::vector<Contradiction> LoraContradictions() {
  return {
      {"flash attention",
       "the guide measured on an RTX 2080 Ti, which has neither FlashAttention-2 nor bf16"},
      {"pinned memory", "on in the guide, off in its code"},
      {"cleanup", "every 10 steps in the guide, at every step that is logged in its code"},
      {"checkpointing: speed", "an optimization that costs 5 % of the speed; by the guide of rft 20-30 %"},
      {"checkpointing: memory", "3.2 -> 2.8 GB in the guide's own table are -12.5 %, not -20 %"},
      {"gradients off-loaded", "the trainer has no such option (use_cpu_offload)"},
      {"epoch 80 % faster", "2.0x among the guide's components, 6 m 15 s -> 3 m 10 s (1.97x) in its table"},
      {"steps/s",
       "time x rate are 66-67 steps in each row: a hold-out of 20 %, not the code's 5 % (84 steps)"},
      {"steps/s", "0.15-0.20 steps/s at batch 4 in another place of the guide"},
      {"all together", kSharesDoNotCompose},
  };
}

/// In what the guide names; what no flag of train turns off is absent by its name.
std::vector<Claim> ClaimsOfTheGuide() {
  return {
      {"D1", "low-memory loading: RAM -20 %", kMemoryMetric, 0.8, "--lora 16 --mmap off",
       "--lora 16 --mmap on", false},
      {"D1", "low-memory loading: 15 % faster, 10 -> 8 s", kWholeRunMetric, 1.15, "--lora 16 --mmap off",
       "--lora 16 --mmap on", false},
      {"D3", "checkpointing: memory -20 %", kMemoryMetric, 0.8, "--lora 16",
       "--lora 16 --checkpoint-activations full", false},
      CostOf({"D3", "checkpointing: speed -5 %", kSpeedMetric, 0.95, "--lora 16",
              "--lora 16 --checkpoint-activations full", false}),
      {"D4", "fused AdamW: +10 %", kSpeedMetric, 1.1, "--lora 16 --fused-optimizer off",
       "--lora 16 --fused-optimizer on", false},
      {"D6", "pinned memory: +5 %", kSpeedMetric, 1.05, "--lora 16 --pin off", "--lora 16 --pin on", true},
      {"D7", "unused columns kept: +2 %", kSpeedMetric, 1.02, "--lora 16 --remove-unused-columns on",
       "--lora 16 --remove-unused-columns off", false},
      {"D8", "no grouping by length: +3 %", kSpeedMetric, 1.03, "--lora 16 --packing off --group-by-length",
       "--lora 16 --packing off", false},
      AtGuideSize(kFourEpochs, {"D9", "cleanup every 10 steps: 5 % faster", kWholeRunMetric, 1.05,
                                "--lora 16 --empty-cache-every 1", "--lora 16 --empty-cache-every 10", true}),
      {"D13", "batch 4 x 2 instead of 2 x 4: epoch 80 % faster", kSpeedMetric, 1.8,
       "--lora 16 --batch 2 --accum 4", "--lora 16 --batch 4 --accum 2", false},
      AtGuideSize(kFourEpochs, {"D14", "fewer evaluations, saves and logs: 20 % faster", kWholeRunMetric, 1.2,
                                kOften, kSeldom, false}),
      AtGuideSize(kFourEpochs, {"D15", "evaluation: 25 -> 10 % of the time", kEvaluationShare, 0.4, kOften,
                                kSeldom, false}),
      AtGuideSize(kFourEpochs, {"D15", "cleanup: 2 -> 0.5 % of the time", kCleanupShare, 0.25,
                                "--lora 16 --empty-cache-every 1", "--lora 16 --empty-cache-every 10", true}),
      {"D15", "throughput 2.0x", kSpeedMetric, 2.0, "--lora 16 --batch 2 --accum 4",
       "--lora 16 --batch 4 --accum 2", false},
      {"D15", "a step: 10 -> 8 s", kStepsMetric, 1.25, "--lora 16 --batch 2 --accum 4",
       "--lora 16 --batch 4 --accum 2", false},
      {"D17", "flash attention: +30-40 %", kSpeedMetric, 1.3, "--lora 16 --attn-backend math",
       "--lora 16 --attn-backend flash", true},
      {"D17", "flash attention: memory -20 %", kMemoryMetric, 0.8, "--lora 16 --attn-backend math",
       "--lora 16 --attn-backend flash", true},
      {"D18", "compilation: +15-20 %", kSpeedMetric, 1.15, "--lora 16", "--lora 16 --compile graph", true},
      {"D19", "fp16 before bf16 GPUs: +10 %", kSpeedMetric, 1.1, "--lora 16 --mixed-precision no",
       "--lora 16 --mixed-precision fp16", true},
      {"D20", "gradients off-loaded: memory -50 %", kMemoryMetric, 0.5, "--lora 16",
       "--lora 16 --offload gradients", true},
      CostOf({"D20", "gradients off-loaded: speed -15 %", kSpeedMetric, 0.85, "--lora 16",
              "--lora 16 --offload gradients", true}),
      {"D21", "ZeRO-2: memory -30 %", kMemoryMetric, 0.7, "--lora 16", "--lora 16 --zero 2", true},
      {"D21", "ZeRO-2: +20 %", kSpeedMetric, 1.2, "--lora 16", "--lora 16 --zero 2", true},
      {"D15", "table, batch 4: 0.18 -> 0.35 steps/s", kStepsMetric, 1.94, "--lora 16 --batch 2 --accum 4",
       "--lora 16 --batch 4 --accum 2", false},
      CostOf({"D16", "table, batch 4: memory 2.5 -> 3.2 GB", kMemoryMetric, 1.28,
              "--lora 16 --batch 2 --accum 4", "--lora 16 --batch 4 --accum 2", false}),
      {"D15", "table, flash attention: 0.35 -> 0.48 steps/s", kStepsMetric, 1.37,
       "--lora 16 --batch 4 --accum 2 --attn-backend math",
       "--lora 16 --batch 4 --accum 2 --attn-backend flash", true},
      {"D16", "table, flash attention: memory 3.2 -> 2.7 GB", kMemoryMetric, 0.84,
       "--lora 16 --batch 4 --accum 2 --attn-backend math",
       "--lora 16 --batch 4 --accum 2 --attn-backend flash", true},
      {"D15", "table, compiled: 0.48 -> 0.53 steps/s", kStepsMetric, 1.1, "--lora 16",
       "--lora 16 --compile graph", true},
      CostOf({"D16", "table, compiled: memory stays at 2.7 GB", kMemoryMetric, 1.05, "--lora 16",
              "--lora 16 --compile graph", true}),
      {"D16", "table, checkpointing: memory 3.2 -> 2.8 GB", kMemoryMetric, 0.875,
       "--lora 16 --batch 4 --accum 2", "--lora 16 --batch 4 --accum 2 --checkpoint-activations full", false},
      CostOf({"D16", "table, checkpointing: speed 200 -> 190 %", kSpeedMetric, 0.95,
              "--lora 16 --batch 4 --accum 2", "--lora 16 --batch 4 --accum 2 --checkpoint-activations full",
              false}),
      AtGuideSize(
          kFourEpochs,
          {"D15", "all together: 6 -> 3 minutes", kWholeRunMetric, 2.0,
           "--lora 16 --batch 2 --accum 4 --checkpoint-activations full --eval-split 0.05 --eval-every 5 "
           "--save-every 50 --log-every 2 --keep 2",
           "--lora 16 --batch 4 --accum 2 --eval-split 0.05 --eval-every 20 --save-every 100 --log-every 5 "
           "--keep 1",
           false}),
      Reached({"D23", "45-60 s an epoch", "sum:step_time_s", 60, "", kAnEpoch, true}),
      Reached({"D23", "0.15-0.20 steps/s: 6.7 s a step", "step_time_s", 6.7, "", kAnEpoch, true}),
      Reached({"D23", "the GPU is busy 95-100 %", "gpu_util", 0.95, "", kAnEpoch, true}),
  };
}

}  // namespace

SystemClaims LoraClaims() {
  SystemClaims described;
  described.claims = ClaimsOfTheGuide();
  for (Claim& claim : described.claims) {
    claim.data = ClaimData::kExamples;
    if (*claim.guide == 0) claim.guide = kTinyLlama;
  }
  described.contradictions = LoraContradictions();
  return described;
}

}  // namespace trainwright
