#include "lib/device/determinism.h"
#include "lib/eval/evaluate_job.h"
#include "lib/io/byte_sink.h"
#include "tools/evaluate_options.h"

namespace trainwright {
namespace {

int Run(const EvaluateOptions& options, ToolRun* run) {
  EvaluateJobOptions job;
  job.checkpoint = options.checkpoint;
  job.data = options.data;
  job.format = options.format;
  job.keys = options.keys;
  job.add_bos = options.bos;
  job.add_eos = options.eos;
  job.allow_other_tokenizer = options.allow_other_tokenizer;
  job.sequence_tokens = options.seq;
  job.batch_sequences = options.batch;
  job.mixed_precision = options.mixed_precision;
  job.device = options.device;
  job.attn_backend = options.attn_backend;
  job.threads = options.threads;
  job.logits_path = options.logits;
  const nlohmann::ordered_json result = RunEvaluate(job, run->common.progress);
  run->summary.update(result);
  StdoutSink().Write(AsBytes(result.dump() + "\n"));
  return 0;
}

}  // namespace
}  // namespace trainwright

int main(int argc, char** argv) {
  trainwright::PrepareDeterminism();
  trainwright::EvaluateOptions options;
  return trainwright::RunTool(
      argc, argv, trainwright::EvaluateInfo(),
      [&](CLI::App& app) { trainwright::DefineEvaluateOptions(app, &options); },
      [&](trainwright::ToolRun& run) { return trainwright::Run(options, &run); });
}
