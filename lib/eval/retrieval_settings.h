/// What a user asks of `evaluate --metric retrieval` and `sts`, as parsed. Free of torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/embedding/embedding_settings.h"
#include "lib/retrieval/ranking_metrics.h"

namespace trainwright {

struct RetrievalSettings {
  EmbeddingSettings embedding;  ///< checkpoint empty: vectors, or a run, are given
  std::string corpus, queries;  ///< texts as ForEachRetrievalText reads them; empty: none
  std::string qrels;
  std::string query_vectors, corpus_vectors;  ///< as OpenVectors takes them; empty: none
  std::string run;                            ///< a TREC run to score; empty: none
  std::string run_out;                        ///< where the run is written; empty: nowhere
  std::string query_instruction, passage_instruction;
  std::string baseline;  ///< "bm25", or empty
  int64_t top_k = 100;   ///< documents that are ranked for a query; of no meaning beside `run`
  MetricOptions metrics;
  int bootstrap_draws = 1000;  ///< 0: no intervals
  uint64_t seed = 0;           ///< of the bootstrap
};

struct StsSettings {
  EmbeddingSettings embedding;       ///< checkpoint empty: vectors are given
  std::string pairs;                 ///< JSON lines {"a", "b", "score"}; with vectors the score alone
  std::string a_vectors, b_vectors;  ///< of the pairs' texts; empty: none
  std::string instruction;           ///< of both texts
  std::string cosines_out;           ///< where the similarity of each pair is written; empty: nowhere
  int bootstrap_draws = 1000;        ///< 0: no intervals
  uint64_t seed = 0;                 ///< of the bootstrap
};

}  // namespace trainwright
