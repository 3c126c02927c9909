/// How well rankings answer queries, as trec_eval measures it.
/// \source nDCG: Jarvelin and Kekalainen 2002, "Cumulated gain-based evaluation of IR techniques", with the
/// gains, ties and means of trec_eval
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/retrieval/qrels.h"
#include "lib/retrieval/run_file.h"

namespace trainwright {

/// What a document of grade g > 0 adds to nDCG.
enum class Gain {
  kLinear,       ///< g, as trec_eval
  kExponential,  ///< 2^g - 1
};

/// Over which queries the means are.
enum class AveragedQueries {
  kRun,  ///< those that run and judgements have in common, as trec_eval
  kAll,  ///< all that are judged, as trec_eval -c; one that the run lacks counts 0
};

/// "linear" and "exp"; "run" and "all".
/// \throws Error{kUsage}
Gain ParseGain(const std::string& name);
AveragedQueries ParseAveragedQueries(const std::string& name);
/// "1,10,100": where rankings are cut, rising.
/// \throws Error{kUsage} naming --metric-at
std::vector<int64_t> ParseCuts(const std::string& text);

struct MetricOptions {
  /// Where the ranking is cut; each at least 1, rising.
  std::vector<int64_t> cuts = {1, 3, 5, 10, 100};
  Gain gain = Gain::kLinear;
  AveragedQueries averaged = AveragedQueries::kRun;
};

/// What each query scored: a table with a row a query and a column a measure.
struct RankingScores {
  /// "ndcg_at_1", ..., "recall_at_1", ..., "mrr_at_1", ..., "map": each at every cut but map, which is that
  /// of the whole ranking.
  std::vector<std::string> measures;
  std::vector<std::string> queries;  ///< those that are averaged, by rising names
  std::vector<double> values;        ///< [queries, measures]
  uint64_t queries_of_run = 0;
  uint64_t queries_judged = 0;            ///< of which there are judgements
  uint64_t queries_in_common = 0;         ///< of both
  uint64_t queries_without_relevant = 0;  ///< averaged, and 0 in every measure, as nothing could be found

  /// Of one measure, in the order of the queries.
  std::vector<double> ValuesOf(size_t measure) const;
  /// The number of a measure.
  /// \pre there is one of this name
  size_t MeasureOf(const std::string& name) const;
  double Mean(size_t measure) const;
};

/// nDCG at a cut is the discounted gain of the ranking's first documents over that of the best possible ones,
/// where the document at place r counts 1 / log2(r + 1); recall is the share of all relevant documents that
/// are among the first; MRR one over the place of the first relevant document, 0 where none is among the
/// first; MAP the mean over all relevant documents of the share of relevant ones up to its place.
/// \throws Error{kBadInput} where no query is averaged
RankingScores ScoreRun(const Qrels& qrels, const RetrievalRun& run, const MetricOptions& options);

}  // namespace trainwright
