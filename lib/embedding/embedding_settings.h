/// What a user asks of texts that become vectors, as parsed. Free of torch: command lines are built from it.
#pragma once

#include <cstdint>
#include <string>

namespace trainwright {

/// The same of every tool that embeds.
struct EmbeddingSettings {
  std::string checkpoint;
  std::string adapter;            ///< in peft's layout, beside the checkpoint; empty: none
  bool allow_other_base = false;  ///< than the one that the adapter was trained on
  /// Where the model's folder does not say: how hidden states become a vector, how texts attend, and how they
  /// are written; empty: mean, cccc, and the text as it is.
  std::string pooling, attention, text_template;
  int64_t max_length = 0;        ///< longest text in tokens; 0: that of its role, else the model's context
  bool one_length = false;       ///< whether texts of both roles may be as long as those of the longer one
  int64_t truncate_dim = 0;      ///< first numbers of a vector that are kept; 0: all
  int64_t batch_tokens = 16384;  ///< that are computed at once
  bool batch_invariant = false;
  std::string mixed_precision = "no";
  std::string device = "auto";
  std::string attn_backend = "auto";  ///< as ParseAttentionBackend takes it
  int threads = 0;                    ///< 0: physical cores
  std::string kernels = "auto";       ///< as of EngineRequest
  int64_t nproc = 1;                  ///< ranks that this program starts on this machine
  double dist_timeout_s = 60;         ///< within which a rank at fault ends all others
};

}  // namespace trainwright
