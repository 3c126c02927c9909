/// What a user asks of `embed`, as parsed. Free of torch: the command line is built from it.
#pragma once

#include <cstdint>
#include <string>

#include "lib/embedding/embedding_settings.h"

namespace trainwright {

/// Of `embed --mine-negatives`.
struct MiningSettings {
  std::string records;  ///< contrastive records to find negatives for; empty: texts are embedded
  std::string corpus;   ///< texts to find them in; empty: the positives of all records
  int64_t negatives = 15;
  int64_t first_place = 1, last_place = 200;  ///< of a query's ranking, positives left out: which are taken
  double relative_margin = 0.05;  ///< texts that score above 1 - this of the positive's score are left out
  bool keep_negatives = false;    ///< those that a record has stay in front of the new ones

  bool is_asked_for() const { return !records.empty(); }
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
