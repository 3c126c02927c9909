#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/device/determinism.h"
#include "lib/dist/shared_work.h"
#include "lib/eval/evaluate_job.h"
#include "lib/eval/rank_input.h"
#include "lib/eval/retrieval_job.h"
#include "lib/eval/sts_job.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_sink.h"
#include "lib/model/built_in_families.h"
#include "lib/objective/objective_registry.h"
#include "lib/score/answers_job.h"
#include "tools/engine_ranks.h"
#include "tools/evaluate_options.h"

namespace trainwright {
namespace {

void Require(bool given, const std::string& flag, const std::string& metric) {
  if (!given) throw Error(ErrorCode::kUsage, flag, "is required by --metric " + metric, "", "see --help");
}

void Forbid(bool given, const std::string& flag, const std::string& metric) {
  if (given) throw Error(ErrorCode::kUsage, flag, "has no meaning for --metric " + metric);
}

/// No model, and little work: the writer's.
int ScoreAnswers(const EvaluateOptions& options, ToolRun* run) {
  const nlohmann::ordered_json result =
      RunAnswers({options.samples, options.gold, ParseAnswerFormat(options.answer_format)});
  run->summary.update(result);
  StdoutSink().Write(AsBytes(JsonLineOf(result)));
  return result.at("accuracy").get<double>() < options.min_accuracy ? 1 : 0;
}

/// What a metric measures on, each flag with whether it was given.
using Given = std::vector<std::pair<std::string, bool>>;

Given GivenInputs(const EvaluateOptions& options) {
  const RetrievalSettings& retrieval = options.retrieval;
  return {{"--checkpoint", !options.checkpoint.empty()},
          {"--data", !options.data.empty()},
          {"--samples", !options.samples.empty()},
          {"--gold", !options.gold.empty()},
          {"--corpus", !retrieval.corpus.empty()},
          {"--queries", !retrieval.queries.empty()},
          {"--qrels", !retrieval.qrels.empty()},
          {"--query-vectors", !retrieval.query_vectors.empty()},
          {"--corpus-vectors", !retrieval.corpus_vectors.empty()},
          {"--run", !retrieval.run.empty()},
          {"--run-out", !retrieval.run_out.empty()},
          {"--baseline", !retrieval.baseline.empty()}};
}

/// \param required flags that the metric needs
/// \param allowed others that mean something to it
void CheckInputs(const EvaluateOptions& options, const std::set<std::string>& required,
                 const std::set<std::string>& allowed) {
  for (const auto& [flag, is_given] : GivenInputs(options)) {
    if (required.contains(flag)) {
      Require(is_given, flag, options.metric);
    } else if (!allowed.contains(flag)) {
      Forbid(is_given, flag, options.metric);
    }
  }
}

void CheckRetrieval(const EvaluateOptions& options) {
  const RetrievalSettings& retrieval = options.retrieval;
  std::set<std::string> required = {"--qrels"}, allowed = {"--run-out", "--baseline"};
  if (!options.checkpoint.empty()) {
    required.insert({"--checkpoint", "--corpus", "--queries"});
  } else if (retrieval.run.empty()) {
    required.insert({"--query-vectors", "--corpus-vectors"});
    allowed.insert({"--corpus", "--queries"});
  } else {
    required.insert("--run");
    allowed.insert({"--corpus", "--queries"});
  }
  if (!retrieval.baseline.empty()) required.insert({"--corpus", "--queries"});
  CheckInputs(options, required, allowed);
  if (retrieval.run_out == "-") {
    throw Error(ErrorCode::kUsage, "--run-out", "is a file: the result goes to standard output");
  }
  const std::vector<int64_t> cuts = ParseCuts(options.metric_at);
  if (cuts.back() > retrieval.top_k && retrieval.run.empty()) {
    throw Error(ErrorCode::kUsage, "--top-k",
                std::to_string(retrieval.top_k) + " is below the greatest cutoff of --metric-at, " +
                    std::to_string(cuts.back()));
  }
  if (options.min_ndcg > 0 && std::find(cuts.begin(), cuts.end(), 10) == cuts.end()) {
    throw Error(ErrorCode::kUsage, "--min-ndcg", "is about nDCG@10, and --metric-at lacks 10");
  }
}

void CheckMetric(const EvaluateOptions& options) {
  if (options.metric == "retrieval") return CheckRetrieval(options);
  if (options.metric == "answers") {
    CheckInputs(options, {"--samples", "--gold"}, {});
  } else if (options.metric == "sts" && options.checkpoint.empty()) {
    CheckInputs(options, {"--data", "--query-vectors", "--corpus-vectors"}, {});
  } else {
    CheckInputs(options, {"--checkpoint", "--data"}, {});
  }
}

/// With what it shares with the other metrics.
EmbeddingSettings EmbeddingOf(const EvaluateOptions& options) {
  EmbeddingSettings embedding = options.retrieval.embedding;
  embedding.checkpoint = options.checkpoint;
  embedding.adapter = options.adapter;
  embedding.allow_other_base = options.allow_other_base;
  embedding.mixed_precision = options.mixed_precision;
  embedding.attn_backend = options.attn_backend;
  return embedding;
}

int EvaluateRetrieval(const EvaluateOptions& options, const EngineProcess& process, ToolRun* run) {
  RetrievalSettings settings = options.retrieval;
  settings.embedding = EmbeddingOf(options);
  settings.metrics = {.cuts = ParseCuts(options.metric_at),
                      .gain = ParseGain(options.gain),
                      .averaged = ParseAveragedQueries(options.average)};
  const nlohmann::ordered_json result =
      RunRetrieval(BuiltInFamilies(), settings, process.setup, process.world, run->common.progress);
  return static_cast<int>(AsWriter(process.world, [&] {
    run->summary.update(result);
    StdoutSink().Write(AsBytes(JsonLineOf(result)));
    return result.value("ndcg_at_10", 1.0) < options.min_ndcg ? 1 : 0;
  }));
}

int EvaluatePairs(const EvaluateOptions& options, const EngineProcess& process, ToolRun* run) {
  const RetrievalSettings& retrieval = options.retrieval;
  const StsSettings settings = {.embedding = EmbeddingOf(options),
                                .pairs = options.data,
                                .a_vectors = retrieval.query_vectors,
                                .b_vectors = retrieval.corpus_vectors,
                                .instruction = retrieval.query_instruction,
                                .bootstrap_draws = retrieval.bootstrap_draws,
                                .seed = retrieval.seed};
  const nlohmann::ordered_json result = RunSts(BuiltInFamilies(), settings, process.setup, process.world);
  if (!process.world->is_writer()) return 0;
  run->summary.update(result);
  StdoutSink().Write(AsBytes(JsonLineOf(result)));
  return 0;
}

int EvaluateModel(const EvaluateOptions& options, const EngineProcess& process, ToolRun* run) {
  EvaluateJobOptions job;
  job.checkpoint = options.checkpoint;
  job.adapter = options.adapter;
  job.allow_other_base = options.allow_other_base;
  job.data = options.data;
  job.format = options.format;
  job.keys = options.keys;
  job.add_bos = options.bos;
  job.add_eos = options.eos;
  job.allow_other_tokenizer = options.allow_other_tokenizer;
  job.loss_on = ParseLossOn(options.loss_on);
  job.eval_split = options.eval_split;
  job.eval_split_seed = options.eval_split_seed;
  job.sequence_tokens = options.seq;
  job.batch_sequences = options.batch;
  job.mixed_precision = options.mixed_precision;
  job.process = process.setup;
  job.attn_backend = options.attn_backend;
  job.logits_path = options.logits;
  job.world = process.world;
  const nlohmann::ordered_json result =
      RunEvaluate(BuiltInFamilies(), BuiltInObjectives(), job, run->common.progress);
  run->summary.update(result);
  if (process.world->is_writer()) StdoutSink().Write(AsBytes(JsonLineOf(result)));
  return 0;
}

int EvaluateByMetric(const EvaluateOptions& options, const std::vector<std::string>& argv, ToolRun* run) {
  CheckMetric(options);
  const bool answers = options.metric == "answers";
  const bool perplexity = options.metric == "perplexity";
  const EngineRequest request = {
      .argv = argv,
      .nproc = options.nproc,
      .dist_timeout_s = options.dist_timeout_s,
      .process = {.threads = options.threads, .device = answers ? "cpu" : options.device},
      .check = [&](int64_t ranks) {
        if (perplexity) RefuseSharedPipe(ranks, "--data", options.data);
      }};
  return RunEngine(request, run, [&](const EngineProcess& process) {
    if (perplexity) return EvaluateModel(options, process, run);
    if (options.metric == "retrieval") return EvaluateRetrieval(options, process, run);
    if (options.metric == "sts") return EvaluatePairs(options, process, run);
    return static_cast<int>(AsWriter(process.world, [&] { return ScoreAnswers(options, run); }));
  });
}

}  // namespace
}  // namespace trainwright

int main(int argc, char** argv) {
  trainwright::PrepareDeterminism();
  trainwright::EvaluateOptions options;
  return trainwright::RunTool(
      argc, argv, trainwright::EvaluateInfo(),
      [&](CLI::App& app) { trainwright::DefineEvaluateOptions(app, &options); },
      [&](trainwright::ToolRun& run) {
        return trainwright::EvaluateByMetric(options, std::vector<std::string>(argv, argv + argc), &run);
      });
}
