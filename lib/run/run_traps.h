/// Settings that are allowed each, and together make a run that is not what was meant: reported when it
/// starts.
///
/// A pure function of numbers, free of torch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/run/save_interval.h"

namespace trainwright {

struct RunSetup {
  int64_t total_steps = 1;
  double warmup_steps = 0, peak_lr = 0;
  bool warmup_is_wanted = false;  ///< somebody chose it
  int64_t batch = 1, accum = 1, ranks = 1;
  int64_t log_every = 1;
  SaveInterval save_every;
  std::optional<int64_t> eval_every;  ///< what somebody chose; 0: at start and end only
  bool has_eval_data = false;
  bool resume = false, save_model_only = false;
  bool fp16_on_cpu = false;
  bool emulates_bf16 = false;  ///< GEMMs are of fp32
  double passes = 0;           ///< over the data; 0: not known
  int64_t epoch_samples = 0;   ///< 0: not known
  uint64_t data_chunks = 0, unreadable_chunks = 0;
  uint64_t data_tokens = 0;      ///< of the chunks that one pass reads
  uint64_t held_out_tokens = 0;  ///< of them, which no pass takes
  uint64_t epoch_tokens = 0;     ///< of them in the samples of one pass, where all should be; 0: not known
  int64_t sequence_tokens = 0;
  int64_t stated_positions = 0;                ///< that the model's config is for; 0: not known
  std::string preset;                          ///< empty: none
  int64_t preset_batch = 0, preset_accum = 0;  ///< as in the preset; 0: it does not say
};

/// One sentence a trap, in a fixed order.
std::vector<std::string> FindTraps(const RunSetup& setup);

}  // namespace trainwright
