#include "lib/bench/claims_ten_guide.h"

#include <cstdint>

#include "lib/base/units.h"

namespace trainwright {

std::vector<GuideLine> TenGuide(bool has_profile) {
  constexpr uint64_t kCachedTokens = 256 * 32768;
  const std::string cache = "256 chunks of 32,768 ids take " + FormatBytes(2 * kCachedTokens) +
                            " (2 bytes) to " + FormatBytes(8 * kCachedTokens) + " (8 bytes)";
  return {
      {"E1", "mixed precision: 2x, memory -50 %", "claims, lever --mixed-precision bf16; fp16: needs a GPU"},
      {"E2", "4 workers, prefetch 4, pinned: loading 3-5x", "claim, lever --workers 4 --prefetch 4"},
      {"E3", "gradient accumulation", "lever --accum 4"},
      {"E4", "drop temporaries, empty the cache every 10 steps", "needs a GPU: a CPU has no such cache"},
      {"E5", "one-cycle learning rate, 10 % warm-up", "lever --schedule one-cycle"},
      {"E6", "TF32: 2-3x", "needs a GPU"},
      {"E7", "clip 1.0", "levers --clip 1 and --clip 0"},
      {"E8", "configurations of 123M, 320M and 520M parameters",
       "ten-small-32k, ten-medium-32k, ten-large-32k: 131.4M, 281.1M and 493.4M with the tokens of GPT-2"},
      {"E9", "a cache of 256 chunks takes 4 GB", cache},
      {"E10", "92 h -> 1.7 h -> less than 1 h", "needs a GPU; the ratios are above"},
      {"E11", "a script to start with", "train --preset ten-small-32k; examples/ten"},
      {"E12", "a trainer object", "train --preset ten-small-32k: the recipe as one command"},
      {"E13", "allocator splits of 512 MB, asynchronous launches, cuDNN", "needs a GPU"},
      {"E14", "0.370 s a batch at 22,089 tokens/s", "are 8,173 tokens a batch, not 4 x 32,768; needs a GPU"},
      {"E15", "53.9x by chunks, 2x by fused kernels, 85-107x",
       "claims; scans on the same tokens; 35,000-45,000 tokens/s: needs a GPU"},
      {"E16", "weights 240, optimizer 720, activations 2,000, gradients 240 MB", "memory by category above"},
      {"E17", "checkpoints every N steps", "levers --save-every 2, and --async-save on"},
      {"E18", "--resume goes on from the latest checkpoint", "train --resume does, bit for bit"},
      {"E19", "Loss/train, Throughput/tokens_per_sec, Memory/allocated_gb",
       "train writes them into a run's folder tb"},
      {"E20", "a live view", "tensorboard --logdir of the folder of the runs"},
      {"E21", "begin small, then medium", "ten-nano to ten-large; ten-small-32k, then ten-medium-32k"},
      {"E22", "the GPU is busy 90 % and more", "needs a GPU; how busy CPUs are: variants"},
      {"E23", "pretokenize and pack in chunks of 32,768",
       "pretokenize and pack made the text of this page so"},
      {"E24", "find the largest batch, then accumulate", "train --find-batch does"},
      {"E25", "profile the first run", has_profile ? "train --profile N does" : "feature absent: --profile"},
      {"E26", "memory runs out: batch, accumulation, chunks, recomputation",
       "levers --accum 4, --checkpoint-activations full, --tbptt 2048; memory by category above"},
      {"E27", "slow data: pretokenized, 4-8 workers, prefetch 4-8",
       "claim and lever of 4 workers; a step's data_wait_s shows it"},
      {"E28", "fewer workers where the GPU waits", "needs a GPU; loading is above"},
      {"E29", "unstable: clip, learning rate, warm-up, precision",
       "levers --clip 1, --schedule one-cycle, --mixed-precision bf16: what each costs"},
      {"E30", "3.8x on 4 GPUs", "needs a GPU"},
      {"E31", "less than 20 % of 48 GB", "needs a GPU; memory by category above"},
      {"E31", "$2-3 a run instead of $184", "needs a GPU; train --cost-per-hour reports it"},
      {"E32", "evaluate checkpoints", "evaluate reports the perplexity of each"},
      {"E33", "tune hyper-parameters", "bench --ablate, with the metric final:loss_nats"},
      {"E34", "more: faster loops, fused kernels, fp16, several GPUs",
       "scans and claims above; fp16 and several GPUs: needs a GPU"},
  };
}

}  // namespace trainwright
