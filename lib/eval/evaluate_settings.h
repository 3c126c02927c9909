/// What a user asks of `evaluate`, as parsed. Free of torch: the command line is built from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/eval/retrieval_settings.h"

namespace trainwright {

struct EvaluateSettings {
  std::string checkpoint, adapter, data;
  std::string metric = "perplexity", format = "auto";
  std::vector<std::string> keys;
  bool bos = false, no_bos = false, eos = false, no_eos = false, allow_other_tokenizer = false;
  std::string loss_on = "assistant";
  bool allow_other_base = false;
  std::string eval_split;
  uint64_t eval_split_seed = 0;
  std::string samples, gold, answer_format = "auto";
  /// What retrieval and sts have of their own; what they share with the others is here.
  RetrievalSettings retrieval;
  std::string metric_at = "1,3,5,10,100", gain = "linear", average = "run";
  double min_ndcg = 0;
  std::string cosines_out;
  double min_accuracy = 0;
  int64_t seq = 0;
  std::optional<int64_t> batch;
  std::string mixed_precision = "no", quant = "none", device = "auto", attn_backend = "auto",
              kernels = "auto";
  int threads = 0;
  std::string logits;
  int64_t nproc = 1;
  double dist_timeout_s = 60;
};

/// Of --metric retrieval, with what it shares with the other metrics.
/// \throws Error{kUsage} on a cutoff, gain or average that there is not
RetrievalSettings RetrievalSettingsOf(const EvaluateSettings& settings);

/// Of --metric sts, likewise: the vectors of queries are those of the first texts, the vectors of the corpus
/// those of the second.
StsSettings StsSettingsOf(const EvaluateSettings& settings);

}  // namespace trainwright
