// What the guide of ReFocused-AI claims, and its suite. Sizes are those of the suite's source.
#include "lib/bench/system_claims.h"

namespace trainwright {
namespace {

constexpr char kLarger[] = "--model {neox-768} --seq 1024 --batch 2";
constexpr char kAccumulated[] = "--model {neox-512} --seq 512";
constexpr char kInMemory[] = "--model {neox-512} --seq 1024";
constexpr char kSaved[] = "--model {neox-512} --seq 512 --batch 2";

}  // namespace

SystemClaims RefocusedClaims() {
  SystemClaims described;
  described.claims = {
      AtGuideSize(kLarger, {"B6", "mixed precision: memory -50 %", kMemoryMetric, 0.5, "--mixed-precision no",
                            "--mixed-precision bf16", false}),
      AtGuideSize(kLarger, {"B6", "mixed precision: 2x throughput", kSpeedMetric, 2, "--mixed-precision no",
                            "--mixed-precision bf16", false}),
      AtGuideSize(kLarger, {"B32", "batch 1 -> 4: utilisation 2-4x", kFlopsMetric, 2, "--batch 1",
                            "--batch 4", false}),
      AtGuideSize(kLarger, {"B32", "4 workers: loading 20-50 % faster", kDataWaitMetric, 1 / 1.2,
                            "--workers 0 --prefetch 2", "--workers 4 --prefetch 4", false}),
      AtGuideSize(kLarger, {"B32", "cheap loop: Python overhead -5-15 %", kWholeRunMetric, 1.05,
                            "--log-every 1", "--log-every 25", false}),
      AtGuideSize(kSaved, {"B32", "background upload: checkpoint blocks 90 % less", kBlockingMetric, 0.1,
                           "--steps 12 --save-every 2 --async-save off",
                           "--steps 12 --save-every 2 --async-save on", false}),
      CostOf(AtGuideSize(kSaved,
                         {"B21", "background upload: p99 of a step +5 % at most", kSlowStepMetric, 1.05,
                          "--steps 24 --save-every 0", "--steps 24 --save-every 4 --async-save on", false})),
  };
  described.contradictions = {
      {"", "guide, its commit and the newest code differ in accumulation, save steps, workers, compilation"},
      {"", "pre-tokenized data are announced, and the code trained from them already"},
      {"", kSharesDoNotCompose},
      {"cheap loop",
       "the scheduler steps with the optimizer alone, and then once for each process of the launcher"},
      {"background upload", "no code reads the option of compression: uploads are always gzip"},
  };
  described.suite = {
      {"loader", "--workers 0 --pin off --prefetch 2", ClaimData::kText, kLarger},
      {"loader", "--workers 2 --pin on --prefetch 2", ClaimData::kText, kLarger},
      {"loader", "--workers 4 --pin on --prefetch 4", ClaimData::kText, kLarger},
      {"precision", "--mixed-precision no", ClaimData::kText, kLarger},
      {"precision", "--mixed-precision fp16", ClaimData::kText, kLarger},
      {"precision", "--mixed-precision bf16", ClaimData::kText, kLarger},
      {"accumulation", "--mixed-precision bf16 --batch 4 --accum 1", ClaimData::kText, kAccumulated},
      {"accumulation", "--mixed-precision bf16 --batch 2 --accum 2", ClaimData::kText, kAccumulated},
      {"accumulation", "--mixed-precision bf16 --batch 1 --accum 4", ClaimData::kText, kAccumulated},
      {"memory", "--mixed-precision no --batch 1 --accum 1", ClaimData::kText, kInMemory},
      {"memory", "--mixed-precision no --batch 2 --accum 2", ClaimData::kText, kInMemory},
      {"memory", "--mixed-precision bf16 --batch 2 --accum 2", ClaimData::kText, kInMemory},
      {"memory", "--mixed-precision bf16 --batch 4 --accum 4", ClaimData::kText, kInMemory},
  };
  return described;
}

}  // namespace trainwright
