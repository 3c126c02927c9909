#include "lib/device/determinism.h"
#include "lib/eval/generate_job.h"
#include "tools/generate_options.h"

namespace trainwright {
namespace {

int Run(const GenerateOptions& options, ToolRun* run) {
  GenerateJobOptions job;
  job.checkpoint = options.checkpoint;
  job.prompt = options.prompt;
  job.max_tokens = options.max_tokens;
  job.add_bos = options.bos;
  job.mixed_precision = options.mixed_precision;
  job.device = options.device;
  job.attn_backend = options.attn_backend;
  job.threads = options.threads;
  StdoutSink out;
  run->summary.update(RunGenerate(job, &out));
  return 0;
}

}  // namespace
}  // namespace trainwright

int main(int argc, char** argv) {
  trainwright::PrepareDeterminism();
  trainwright::GenerateOptions options;
  return trainwright::RunTool(
      argc, argv, trainwright::GenerateInfo(),
      [&](CLI::App& app) { trainwright::DefineGenerateOptions(app, &options); },
      [&](trainwright::ToolRun& run) { return trainwright::Run(options, &run); });
}
