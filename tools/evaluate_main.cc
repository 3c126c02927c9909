#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/device/determinism.h"
#include "lib/dist/shared_work.h"
#include "lib/eval/evaluate_job.h"
#include "lib/eval/rank_input.h"
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

void CheckMetric(const EvaluateOptions& options) {
  if (options.metric == "answers") {
    Require(!options.samples.empty(), "--samples", "answers");
    Require(!options.gold.empty(), "--gold", "answers");
    Forbid(!options.checkpoint.empty(), "--checkpoint", "answers");
    Forbid(!options.data.empty(), "--data", "answers");
    return;
  }
  Require(!options.checkpoint.empty(), "--checkpoint", "perplexity");
  Require(!options.data.empty(), "--data", "perplexity");
  Forbid(!options.samples.empty(), "--samples", "perplexity");
  Forbid(!options.gold.empty(), "--gold", "perplexity");
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

int Run(const EvaluateOptions& options, const std::vector<std::string>& argv, ToolRun* run) {
  CheckMetric(options);
  const bool answers = options.metric == "answers";
  const EngineRequest request = {
      .argv = argv,
      .nproc = options.nproc,
      .dist_timeout_s = options.dist_timeout_s,
      .process = {.threads = options.threads, .device = answers ? "cpu" : options.device},
      .check = [&](int64_t ranks) {
        if (!answers) RefuseSharedPipe(ranks, "--data", options.data);
      }};
  return RunEngine(request, run, [&](const EngineProcess& process) {
    if (!answers) return EvaluateModel(options, process, run);
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
        return trainwright::Run(options, std::vector<std::string>(argv, argv + argc), &run);
      });
}
