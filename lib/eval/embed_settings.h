/// What a user asks of `embed`, as parsed. Free of torch: the command line is built from it.
#pragma once

#include <cstdint>
#include <string>

namespace trainwright {

/// How texts become vectors: the same of every tool that embeds.
struct EmbeddingSettings {
  std::string checkpoint;
  std::string adapter;            ///< in peft's layout, beside the checkpoint; empty: none
  bool allow_other_base = false;  ///< than the one that the adapter was trained on
  /// Where the model's folder does not say: how hidden states become a vector, how texts attend, and how they
  /// are written; empty: mean, cccc, and the text as it is.
  std::string pooling, attention, text_template;
  int64_t max_length = 0;        ///< longest text in tokens; 0: that of its role, else the model's context
  int64_t truncate_dim = 0;      ///< first numbers of a vector that are kept; 0: all
  int64_t batch_tokens = 16384;  ///< that are computed at once
  bool batch_invariant = false;
  std::string mixed_precision = "no";
  std::string device = "auto";
  std::string attn_backend = "auto";  ///< as ParseAttentionBackend takes it
  int threads = 0;                    ///< 0: physical cores
  int64_t nproc = 1;                  ///< ranks that this program starts on this machine
  double dist_timeout_s = 60;         ///< within which a rank at fault ends all others
};

/// Of `embed --mine-negatives`.
struct MiningSettings {
  std::string records;  ///< contrastive records to find negatives for; empty: texts are embedded
  std::string corpus;   ///< texts to find them in; empty: the positives of all records
  int64_t negatives = 15;
  int64_t first_place = 1, last_place = 200;  ///< of a query's ranking, positives left out: which are taken
  double relative_margin = 0.05;  ///< texts that score above 1 - this of the positive's score are left out
  bool keep_negatives = false;    ///< those that a record has stay in front of the new ones
};

struct EmbedSettings {
  EmbeddingSettings embedding;
  std::string input = "-";  ///< "-" is standard input
  std::string input_format = "auto";
  std::string instruction;       ///< of texts that have none of their own
  std::string role = "passage";  ///< of texts that have none of their own
  std::string output = "-";
  std::string format = "auto";  ///< as VectorFormatOf takes it
  bool force_terminal = false;
  bool resume = false;
  std::string context_cache;  ///< folder that gets what the model has computed of the texts; empty: none
  MiningSettings mining;
};

}  // namespace trainwright
