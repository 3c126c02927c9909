// What the guide of GRIT claims.
#include "lib/bench/system_claims.h"

namespace trainwright {

SystemClaims GritClaims() {
  SystemClaims described;
  described.claims = {
      {"A39", "4 workers: loading 20-40 % faster", kDataWaitMetric, 1 / 1.2,
       "--objective grit --batch 32 --query-max-len 32 --passage-max-len 32 --workers 0",
       "--objective grit --batch 32 --query-max-len 32 --passage-max-len 32 --workers 4", false,
       ClaimData::kContrastive},
      {"A40", "compilation: forward 15-25 % faster", kForwardMetric, 1 / 1.15, "--objective grit",
       "--objective grit --grit-compile graph", false, ClaimData::kContrastive},
      {"A41", "checkpointing: memory -10-20 %", kMemoryMetric, 0.9, "--objective grit",
       "--objective grit --checkpoint-activations full", false, ClaimData::kContrastive},
      {"A42", "everything: 25-50 % faster", kWholeRunMetric, 1.25, "--objective grit",
       "--objective grit --preset grit-fast", false, ClaimData::kContrastive},
  };
  described.contradictions = {
      {"", "no published code has the guide's module of optimizations: its shares are unmeasured"},
      {"compilation",
       "a captured graph needs fixed shapes, and the code pads to the longest text of a batch"},
      {"checkpointing",
       "the forward pass that is repeated costs 20-33 % more compute, beside a faster forward pass"},
      {"checkpointing",
       "preserve_rng_state=false is wrong with GradCache and dropout, which adapters have there"},
      {"everything", kSharesDoNotCompose},
  };
  return described;
}

}  // namespace trainwright
