#include <cstdint>
#include <string>
#include <vector>

#include "lib/device/determinism.h"
#include "lib/dist/facts.h"
#include "lib/dist/shared_work.h"
#include "lib/dist/world.h"
#include "lib/eval/evaluate_checks.h"
#include "lib/eval/evaluate_job.h"
#include "lib/eval/metric_options.h"
#include "lib/eval/rank_input.h"
#include "lib/eval/retrieval_job.h"
#include "lib/eval/sts_job.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_sink.h"
#include "lib/model/built_in_families.h"
#include "lib/objective/objective_registry.h"
#include "lib/report/option_value.h"
#include "lib/score/answers_job.h"
#include "tools/engine_ranks.h"
#include "tools/evaluate_options.h"

namespace trainwright {
namespace {

/// The writer's.
void Tell(const nlohmann::ordered_json& result, ToolRun* run) {
  run->summary.update(result);
  StdoutSink().Write(AsBytes(JsonLineOf(result)));
}

/// Where its reader went away, all ranks learn that.
/// \returns the exit status
int TellAsWriter(const nlohmann::ordered_json& result, World* world, ToolRun* run) {
  return static_cast<int>(AsWriter(world, [&] {
    Tell(result, run);
    return 0;
  }));
}

/// No model, and little work: the writer's.
int ScoreAnswers(const EvaluateSettings& options, ToolRun* run) {
  const nlohmann::ordered_json result =
      RunAnswers({options.samples, options.gold, ParseAnswerFormat(options.answer_format)});
  Tell(result, run);
  return result.at("accuracy").get<double>() < options.min_accuracy ? 1 : 0;
}

int EvaluateRetrieval(const EvaluateSettings& options, const EngineProcess& process, ToolRun* run) {
  const nlohmann::ordered_json result = RunRetrieval(BuiltInFamilies(), RetrievalSettingsOf(options),
                                                     process.setup, process.world, run->common.progress);
  return static_cast<int>(AsWriter(process.world, [&] {
    Tell(result, run);
    return result.value("ndcg_at_10", 1.0) < options.min_ndcg ? 1 : 0;
  }));
}

int EvaluatePairs(const EvaluateSettings& options, const EngineProcess& process, ToolRun* run) {
  const nlohmann::ordered_json result =
      RunSts(BuiltInFamilies(), StsSettingsOf(options), process.setup, process.world);
  return TellAsWriter(result, process.world, run);
}

int EvaluateModel(const EvaluateSettings& options, const EngineProcess& process, ToolRun* run) {
  EvaluateJobOptions job;
  job.checkpoint = options.checkpoint;
  job.adapter = options.adapter;
  job.allow_other_base = options.allow_other_base;
  job.data = options.data;
  job.format = options.format;
  job.keys = options.keys;
  if (options.bos || options.no_bos) job.add_bos = options.bos;
  if (options.eos || options.no_eos) job.add_eos = options.eos;
  job.flag_of_text = FlagOfText(run->options);
  job.allow_other_tokenizer = options.allow_other_tokenizer;
  job.loss_on = ParseLossOn(options.loss_on);
  job.eval_split = options.eval_split;
  job.eval_split_seed = options.eval_split_seed;
  job.sequence_tokens = options.seq;
  if (options.batch) {
    job.batch_sequences = *options.batch;
    job.most_batch_tokens = 0;
  }
  job.mixed_precision = options.mixed_precision;
  job.quant = options.quant;
  job.process = process.setup;
  job.attn_backend = options.attn_backend;
  job.logits_path = options.logits;
  job.logits_if_any = !IsTyped("logits", run->options);
  job.world = process.world;
  const nlohmann::ordered_json result =
      RunEvaluate(BuiltInFamilies(), BuiltInObjectives(), job, run->common.progress);
  return TellAsWriter(result, process.world, run);
}

/// What shapes the result, but for what the data and the model say.
Facts FactsOfResult(const EvaluateSettings& options, const std::vector<OptionValue>& values) {
  Facts facts = FactsOfOptions(values, {"metric",
                                        "attn-backend",
                                        "format",
                                        "key",
                                        "bos",
                                        "no-bos",
                                        "eos",
                                        "no-eos",
                                        "loss-on",
                                        "eval-split",
                                        "eval-split-seed",
                                        "baseline",
                                        "query-instruction",
                                        "passage-instruction",
                                        "top-k",
                                        "pooling",
                                        "attn",
                                        "template",
                                        "max-length",
                                        "truncate-dim",
                                        "batch-tokens",
                                        "batch-invariant"});
  facts["--logits"] = FactOfPath(options.logits);
  return facts;
}

int EvaluateByMetric(EvaluateSettings options, const std::vector<std::string>& argv, ToolRun* run) {
  LeaveOutOtherInputs(run->options, &options);
  CheckEvaluateSettings(options);
  RefuseOptionsOfOtherMetrics(options.metric, run->options);
  if (options.checkpoint.empty()) RefuseOptionsOfModels(run->options);
  const bool answers = options.metric == "answers";
  const bool perplexity = options.metric == "perplexity";
  EngineRequest request;
  request.argv = argv;
  request.nproc = options.nproc;
  request.dist_timeout_s = options.dist_timeout_s;
  request.process.threads = options.threads;
  request.process.device = answers ? "cpu" : options.device;
  request.kernels = answers ? "usual" : options.kernels;
  request.facts = FactsOfResult(options, run->options);
  request.check = [&](int64_t ranks) {
    if (perplexity) RefuseSharedPipe(ranks, "--data", options.data);
  };
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
  trainwright::EvaluateSettings options;
  return trainwright::RunTool(
      argc, argv, trainwright::EvaluateInfo(),
      [&](CLI::App& app) { trainwright::DefineEvaluateOptions(app, &options); },
      [&](trainwright::ToolRun& run) {
        return trainwright::EvaluateByMetric(options, std::vector<std::string>(argv, argv + argc), &run);
      });
}
