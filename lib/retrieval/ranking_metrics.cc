#include "lib/retrieval/ranking_metrics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

#include "lib/base/error.h"
#include "lib/base/number_list.h"

namespace trainwright {
namespace {

/// What one query's ranking is compared with, and its documents' grades in their order.
struct GradedRanking {
  std::vector<int32_t> grades;  ///< of the ranking; 0 where a document is not judged
  std::vector<int32_t> ideal;   ///< all grades above 0, falling
};

GradedRanking Grade(const Judgements& judgements, const Ranking& ranking) {
  GradedRanking graded;
  graded.grades.reserve(ranking.size());
  for (const RankedDocument& document : ranking) {
    const auto judged = judgements.find(document.id);
    graded.grades.push_back(judged == judgements.end() ? 0 : std::max(judged->second, 0));
  }
  for (const auto& [document, grade] : judgements) {
    if (grade > 0) graded.ideal.push_back(grade);
  }
  std::sort(graded.ideal.begin(), graded.ideal.end(), std::greater<>());
  return graded;
}

double DiscountedGain(const std::vector<int32_t>& grades, size_t cut, Gain gain) {
  double sum = 0;
  for (size_t i = 0; i < std::min(cut, grades.size()); ++i) {
    if (grades[i] <= 0) continue;
    const double value = gain == Gain::kLinear ? grades[i] : std::exp2(grades[i]) - 1;
    sum += value / std::log2(static_cast<double>(i + 2));
  }
  return sum;
}

double Ndcg(const GradedRanking& graded, size_t cut, Gain gain) {
  const double ideal = DiscountedGain(graded.ideal, cut, gain);
  return ideal > 0 ? DiscountedGain(graded.grades, cut, gain) / ideal : 0;
}

double Recall(const GradedRanking& graded, size_t cut) {
  if (graded.ideal.empty()) return 0;
  const auto end = graded.grades.begin() + static_cast<ptrdiff_t>(std::min(cut, graded.grades.size()));
  const auto found = std::count_if(graded.grades.begin(), end, [](int32_t grade) { return grade > 0; });
  return static_cast<double>(found) / static_cast<double>(graded.ideal.size());
}

double ReciprocalRank(const GradedRanking& graded, size_t cut) {
  for (size_t i = 0; i < std::min(cut, graded.grades.size()); ++i) {
    if (graded.grades[i] > 0) return 1 / static_cast<double>(i + 1);
  }
  return 0;
}

double AveragePrecision(const GradedRanking& graded) {
  if (graded.ideal.empty()) return 0;
  double sum = 0;
  int64_t found = 0;
  for (size_t i = 0; i < graded.grades.size(); ++i) {
    if (graded.grades[i] > 0) sum += static_cast<double>(++found) / static_cast<double>(i + 1);
  }
  return sum / static_cast<double>(graded.ideal.size());
}

std::vector<std::string> MeasuresOf(const MetricOptions& options) {
  std::vector<std::string> names;
  for (const char* measure : {"ndcg", "recall", "mrr"}) {
    for (const int64_t cut : options.cuts)
      names.push_back(std::string(measure) + "_at_" + std::to_string(cut));
  }
  names.emplace_back("map");
  return names;
}

/// Appends what the measures of MeasuresOf are, in their order.
void AppendScores(const GradedRanking& graded, const MetricOptions& options, std::vector<double>* values) {
  for (const int64_t cut : options.cuts) {
    values->push_back(Ndcg(graded, static_cast<size_t>(cut), options.gain));
  }
  for (const int64_t cut : options.cuts) values->push_back(Recall(graded, static_cast<size_t>(cut)));
  for (const int64_t cut : options.cuts) values->push_back(ReciprocalRank(graded, static_cast<size_t>(cut)));
  values->push_back(AveragePrecision(graded));
}

}  // namespace

Gain ParseGain(const std::string& name) {
  if (name == "linear") return Gain::kLinear;
  if (name == "exp") return Gain::kExponential;
  throw Error(ErrorCode::kUsage, "--gain", "'" + name + "' is neither linear nor exp");
}

AveragedQueries ParseAveragedQueries(const std::string& name) {
  if (name == "run") return AveragedQueries::kRun;
  if (name == "all") return AveragedQueries::kAll;
  throw Error(ErrorCode::kUsage, "--average", "'" + name + "' is neither run nor all");
}

std::vector<int64_t> ParseCuts(const std::string& text) {
  const std::optional<std::vector<int64_t>> cuts = ParseNumberList<int64_t>(text);
  if (!cuts || cuts->front() < 1 ||
      std::adjacent_find(cuts->begin(), cuts->end(), std::greater_equal<>()) != cuts->end()) {
    throw Error(ErrorCode::kUsage, "--metric-at", "'" + text + "' is no list of rising places like 1,10,100");
  }
  return *cuts;
}

std::vector<double> RankingScores::ValuesOf(size_t measure) const {
  std::vector<double> column;
  column.reserve(queries.size());
  for (size_t i = measure; i < values.size(); i += measures.size()) column.push_back(values[i]);
  return column;
}

size_t RankingScores::MeasureOf(const std::string& name) const {
  const auto found = std::find(measures.begin(), measures.end(), name);
  TRAINWRIGHT_CHECK(found != measures.end());
  return static_cast<size_t>(found - measures.begin());
}

double RankingScores::Mean(size_t measure) const {
  const std::vector<double> column = ValuesOf(measure);
  return std::accumulate(column.begin(), column.end(), 0.0) / static_cast<double>(column.size());
}

RankingScores ScoreRun(const Qrels& qrels, const RetrievalRun& run, const MetricOptions& options) {
  const Ranking nothing;
  RankingScores scores;
  scores.measures = MeasuresOf(options);
  scores.queries_of_run = run.size();
  scores.queries_judged = qrels.size();
  for (const auto& [query, judgements] : qrels) {
    const auto found = run.find(query);
    scores.queries_in_common += found != run.end() ? 1 : 0;
    if (found == run.end() && options.averaged == AveragedQueries::kRun) continue;
    const GradedRanking graded = Grade(judgements, found != run.end() ? found->second : nothing);
    scores.queries_without_relevant += graded.ideal.empty() ? 1 : 0;
    scores.queries.push_back(query);
    AppendScores(graded, options, &scores.values);
  }
  if (scores.queries.empty()) {
    throw Error(ErrorCode::kBadInput, "the run",
                "has " + std::to_string(run.size()) + " queries, none of which is judged", "",
                "give the judgements of these queries by --qrels");
  }
  return scores;
}

}  // namespace trainwright
