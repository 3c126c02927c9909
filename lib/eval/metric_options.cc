#include "lib/eval/metric_options.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lib/base/error.h"
#include "lib/report/option_need.h"

namespace trainwright {
namespace {

using Names = std::vector<std::string>;

/// The metrics that have an option; those that are not here are for all.
const std::map<std::string, Names>& MetricsOfOptions() {
  static const std::map<std::string, Names> metrics = [] {
    const Names perplexity = {"perplexity"}, answers = {"answers"}, retrieval = {"retrieval"},
                vectors = {"retrieval", "sts"}, models = {"perplexity", "retrieval", "sts"};
    const std::vector<std::pair<Names, Names>> options_of = {
        {perplexity,
         {"format", "key", "bos", "no-bos", "eos", "no-eos", "allow-other-tokenizer", "loss-on", "eval-split",
          "eval-split-seed", "seq", "batch", "quant", "logits"}},
        {answers, {"samples", "gold", "answer-format", "min-accuracy"}},
        {retrieval,
         {"corpus", "queries", "qrels", "run", "run-out", "baseline", "passage-instruction", "top-k",
          "metric-at", "gain", "average", "min-ndcg"}},
        {vectors,
         {"query-vectors", "corpus-vectors", "query-instruction", "bootstrap", "bootstrap-seed",
          "truncate-dim", "max-length", "batch-tokens", "batch-invariant", "pooling", "attn", "template"}},
        {{"sts"}, {"cosines-out"}},
        {{"perplexity", "sts"}, {"data"}},
        {models, {"checkpoint", "adapter", "allow-other-base", "mixed-precision", "attn-backend"}}};
    std::map<std::string, Names> by_option;
    for (const auto& [names, options] : options_of) {
      for (const std::string& option : options) by_option[option] = names;
    }
    return by_option;
  }();
  return metrics;
}

}  // namespace

bool HasOption(const std::string& metric, const std::string& key) {
  const auto found = MetricsOfOptions().find(key);
  return found == MetricsOfOptions().end() ||
         std::find(found->second.begin(), found->second.end(), metric) != found->second.end();
}

std::string HintOfMetrics(const std::string& key) {
  const auto found = MetricsOfOptions().find(key);
  if (found == MetricsOfOptions().end()) return "";
  const Names& metrics = found->second;
  std::string names;
  for (size_t i = 0; i < metrics.size(); ++i) {
    names += (i == 0 ? "" : i + 1 == metrics.size() ? " or " : ", ") + metrics[i];
  }
  return "it is for --metric " + names;
}

void RefuseOptionsOfModels(const std::vector<OptionValue>& options) {
  static const std::set<std::string> of_models = {
      "adapter",    "allow-other-base", "mixed-precision",   "attn-backend",
      "max-length", "batch-tokens",     "batch-invariant",   "pooling",
      "attn",       "template",         "query-instruction", "passage-instruction"};
  RefuseWithout("--checkpoint", of_models, options);
}

bool IsTyped(const std::string& key, const std::vector<OptionValue>& options) {
  return std::any_of(options.begin(), options.end(), [&](const OptionValue& option) {
    return option.key == key && option.origin == OptionOrigin::kCommandLine;
  });
}

std::string FlagOfText(const std::vector<OptionValue>& options) {
  static const std::set<std::string> of_text = {"key", "bos", "no-bos", "eos", "no-eos"};
  for (const OptionValue& option : options) {
    if (option.origin == OptionOrigin::kCommandLine && of_text.contains(option.key)) return "--" + option.key;
  }
  return "";
}

void RefuseOptionsOfOtherMetrics(const std::string& metric, const std::vector<OptionValue>& options) {
  for (const OptionValue& option : options) {
    if (option.origin != OptionOrigin::kCommandLine || HasOption(metric, option.key)) continue;
    throw Error(ErrorCode::kUsage, "--" + option.key, "has no meaning for --metric " + metric, "",
                HintOfMetrics(option.key));
  }
}

}  // namespace trainwright
