#include "lib/eval/evaluate_checks.h"

#include <algorithm>
#include <cstdint>
#include <map>
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

/// What a metric measures on, each flag with where the settings have it.
template <typename Settings>
auto InputsOf(Settings* settings) {
  auto& retrieval = settings->retrieval;
  using Inputs = std::vector<std::pair<std::string, decltype(&settings->data)>>;
  return Inputs{{"--checkpoint", &settings->checkpoint},
                {"--data", &settings->data},
                {"--samples", &settings->samples},
                {"--gold", &settings->gold},
                {"--corpus", &retrieval.corpus},
                {"--queries", &retrieval.queries},
                {"--qrels", &retrieval.qrels},
                {"--query-vectors", &retrieval.query_vectors},
                {"--corpus-vectors", &retrieval.corpus_vectors},
                {"--run", &retrieval.run},
                {"--run-out", &retrieval.run_out},
                {"--baseline", &retrieval.baseline},
                {"--cosines-out", &settings->cosines_out}};
}

/// Of inputs that take each other's place, those that go together have one number.
const std::map<std::string, int>& Sources() {
  static const std::map<std::string, int> sources = {
      {"--checkpoint", 0}, {"--query-vectors", 1}, {"--corpus-vectors", 1}, {"--run", 2}};
  return sources;
}

void KeepFromStandardOutput(const std::string& flag, const std::string& path) {
  if (!IsStandardOutput(path)) return;
  throw Error(ErrorCode::kUsage, flag, "is a file: the result goes to standard output");
}

/// \param required flags that the metric needs
/// \param allowed others that mean something to it
void CheckInputs(const EvaluateSettings& settings, const std::set<std::string>& required,
                 const std::set<std::string>& allowed) {
  for (const auto& [flag, text] : InputsOf(&settings)) {
    const bool is_given = !text->empty();
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

/// Of two sources of rankings, what the model lacks is not what is wrong.
void RefuseSourcesBesideModel(const EvaluateSettings& settings) {
  if (settings.checkpoint.empty()) return;
  for (const auto& [flag, text] : InputsOf(&settings)) {
    if (text->empty() || flag == "--checkpoint" || !Sources().contains(flag)) continue;
    throw Error(ErrorCode::kUsage, flag, "does not go with the other inputs that are given: --checkpoint", "",
                "give one of --checkpoint, the two files of vectors and --run; see METRICS in --help");
  }
}

void CheckRetrieval(const EvaluateSettings& settings) {
  RefuseSourcesBesideModel(settings);
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

void LeaveOutOtherInputs(const std::vector<OptionValue>& options, EvaluateSettings* settings) {
  std::map<std::string, OptionOrigin> origins;
  for (const OptionValue& option : options) origins["--" + option.key] = option.origin;
  const auto inputs = InputsOf(settings);
  std::map<int, OptionOrigin> origin_of_source;
  OptionOrigin first = OptionOrigin::kDefault;
  for (const auto& [flag, text] : inputs) {
    const OptionOrigin origin = origins[flag];
    if (origin != OptionOrigin::kCommandLine && !HasOption(settings->metric, flag.substr(2))) text->clear();
    const auto source = Sources().find(flag);
    if (source == Sources().end() || text->empty() || !HasOption(settings->metric, flag.substr(2))) continue;
    OptionOrigin& of_source = origin_of_source[source->second];
    of_source = std::max(of_source, origin);
    first = std::max(first, origin);
  }
  for (const auto& [flag, text] : inputs) {
    const auto source = Sources().find(flag);
    if (source == Sources().end() || !HasOption(settings->metric, flag.substr(2))) continue;
    if (origin_of_source[source->second] < first) text->clear();
  }
}

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
