/// What a user asks of `generate`, as parsed. Free of torch: the command line is built from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/eval/sampling.h"

namespace trainwright {

struct GenerateSettings {
  std::string checkpoint;
  std::string adapter;                ///< in peft's layout, beside the checkpoint; empty: none
  bool allow_other_base = false;      ///< than the one that the adapter was trained on
  std::optional<std::string> prompt;  ///< absent: JSON lines of `input`
  std::string input = "-";            ///< "-" is standard input
  int64_t max_tokens = 128;
  bool add_bos = false;
  std::string chat_template;    ///< built-in name or file; empty: prompts are texts to continue
  bool chat = false;            ///< a conversation over standard input
  std::string system;           ///< what its system turn says; empty: none
  std::string format = "auto";  ///< "text", "jsonl"; auto looks at the terminal
  std::string context_cache;    ///< folder of contexts that prompts name; empty: none

  std::string state_in;                ///< file of the state that prompts go on from; empty: none
  std::string state_out;               ///< file that gets the one prompt's state; empty: none
  std::string state_after = "prompt";  ///< what that state is after; or "sample"

  int64_t samples = 1;  ///< of each prompt
  SamplingOptions sampling;
  uint64_t seed = 0;
  std::vector<std::string> stops;  ///< texts that end a sample
  int64_t batch = 16;              ///< sequences decoded together
  bool batch_invariant = false;
  std::optional<int64_t>
      log_probabilities;  ///< of this many other tokens besides each chosen one; absent: none

  std::string keep_if;         ///< "answered", "valid", "strict"; empty: every sample is written
  std::string keep = "first";  ///< "all", "distinct"
  std::string gold;            ///< file of gold answers
  std::string answer_format = "auto";

  std::string mixed_precision = "no";
  std::string quant = "none";  ///< as ParseWeightFormat takes it
  std::string device = "auto";
  std::string kernels = "auto";       ///< as of EngineRequest
  std::string attn_backend = "auto";  ///< as ParseAttentionBackend takes it
  int threads = 0;                    ///< 0: physical cores

  int64_t nproc = 1;           ///< ranks that this program starts on this machine
  double dist_timeout_s = 60;  ///< within which a rank at fault ends all others
};

}  // namespace trainwright
