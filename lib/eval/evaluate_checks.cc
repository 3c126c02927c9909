#include "lib/eval/evaluate_checks.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/eval/metric_options.h"
#include "lib/io/output_link.h"
#include "lib/retrieval/ranking_metrics.h"

namespace trainwright {
namespace {

/// What a metric measures on, each flag with whether it was given.
using Given = std::vector<std::pair<std::string, bool>>;

Given GivenInputs(const EvaluateSettings& settings) {
  const RetrievalSettings& retrieval = settings.retrieval;
  return {{"--checkpoint", !settings.checkpoint.empty()},
          {"--data", !settings.data.empty()},
          {"--samples", !settings.samples.empty()},
          {"--gold", !settings.gold.empty()},
          {"--corpus", !retrieval.corpus.empty()},
          {"--queries", !retrieval.queries.empty()},
          {"--qrels", !retrieval.qrels.empty()},
          {"--query-vectors", !retrieval.query_vectors.empty()},
          {"--corpus-vectors", !retrieval.corpus_vectors.empty()},
          {"--run", !retrieval.run.empty()},
          {"--run-out", !retrieval.run_out.empty()},
          {"--baseline", !retrieval.baseline.empty()},
          {"--cosines-out", !settings.cosines_out.empty()}};
}

void KeepFromStandardOutput(const std::string& flag, const std::string& path) {
  if (!IsStandardOutput(path)) return;
  throw Error(ErrorCode::kUsage, flag, "is a file: the result goes to standard output");
}

/// \param required flags that the metric needs
/// \param allowed others that mean something to it
void CheckInputs(const EvaluateSettings& settings, const std::set<std::string>& required,
                 const std::set<std::string>& allowed) {
  for (const auto& [flag, is_given] : GivenInputs(settings)) {
    if (required.contains(flag) && !is_given) {
      throw Error(ErrorCode::kUsage, flag, "is required by --metric " + settings.metric, "", "see --help");
    }
    if (!is_given || required.contains(flag) || allowed.contains(flag)) continue;
    const std::string key = flag.substr(2);
    if (HasOption(settings.metric, key)) {
      throw Error(ErrorCode::kUsage, flag, "does not go with the other inputs that are given", "",
                  "see METRICS in --help");
    }
    throw Error(ErrorCode::kUsage, flag, "has no meaning for --metric " + settings.metric, "",
                HintOfMetrics(key));
  }
}

void CheckRetrieval(const EvaluateSettings& settings) {
  const RetrievalSettings& retrieval = settings.retrieval;
  std::set<std::string> required = {"--qrels"}, allowed = {"--run-out", "--baseline"};
  if (!settings.checkpoint.empty()) {
    required.insert({"--checkpoint", "--corpus", "--queries"});
  } else if (retrieval.run.empty()) {
    required.insert({"--query-vectors", "--corpus-vectors"});
    allowed.insert({"--corpus", "--queries"});
  } else {
    required.insert("--run");
    allowed.insert({"--corpus", "--queries"});
  }
  if (!retrieval.baseline.empty()) required.insert({"--corpus", "--queries"});
  CheckInputs(settings, required, allowed);
  KeepFromStandardOutput("--run-out", retrieval.run_out);
  const std::vector<int64_t> cuts = ParseCuts(settings.metric_at);
  if (cuts.back() > retrieval.top_k && retrieval.run.empty()) {
    throw Error(ErrorCode::kUsage, "--top-k",
                std::to_string(retrieval.top_k) + " is below the greatest cutoff of --metric-at, " +
                    std::to_string(cuts.back()));
  }
  if (settings.min_ndcg > 0 && std::find(cuts.begin(), cuts.end(), 10) == cuts.end()) {
    throw Error(ErrorCode::kUsage, "--min-ndcg", "is about nDCG@10, and --metric-at lacks 10");
  }
}

void CheckPairs(const EvaluateSettings& settings) {
  std::set<std::string> required = {"--data"};
  if (settings.checkpoint.empty()) {
    required.insert({"--query-vectors", "--corpus-vectors"});
  } else {
    required.insert("--checkpoint");
  }
  CheckInputs(settings, required, {"--cosines-out"});
  KeepFromStandardOutput("--cosines-out", settings.cosines_out);
}

}  // namespace

void CheckEvaluateSettings(const EvaluateSettings& settings) {
  if (settings.metric == "retrieval") return CheckRetrieval(settings);
  if (settings.metric == "answers") {
    CheckInputs(settings, {"--samples", "--gold"}, {});
  } else if (settings.metric == "sts") {
    CheckPairs(settings);
  } else {
    CheckInputs(settings, {"--checkpoint", "--data"}, {});
    KeepFromStandardOutput("--logits", settings.logits);
  }
}

}  // namespace trainwright
