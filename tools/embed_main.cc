#include <cstdint>
#include <string>
#include <vector>

#include "lib/device/determinism.h"
#include "lib/eval/embed_checks.h"
#include "lib/eval/embed_job.h"
#include "lib/eval/mining_job.h"
#include "lib/eval/rank_input.h"
#include "lib/model/built_in_families.h"
#include "lib/retrieval/vector_writer.h"
#include "tools/embed_options.h"
#include "tools/engine_ranks.h"

namespace trainwright {
namespace {

int Run(const EmbedSettings& settings, const std::vector<std::string>& argv, ToolRun* run) {
  CheckEmbedSettings(settings);
  run->KeepFromSummary({IdsPathOf(settings.output)});
  const EmbeddingSettings& embedding = settings.embedding;
  EngineRequest request;
  request.argv = argv;
  request.nproc = embedding.nproc;
  request.dist_timeout_s = embedding.dist_timeout_s;
  request.process.threads = embedding.threads;
  request.process.device = embedding.device;
  request.kernels = embedding.kernels;
  request.facts =
      FactsOfOptions(run->options, {"negatives", "first-place", "last-place", "relative-margin",
                                    "keep-negatives", "pooling", "attn", "template", "max-length",
                                    "truncate-dim", "batch-tokens", "batch-invariant", "attn-backend"});
  request.facts["--mine-negatives"] = FactOfPath(settings.mining.records);
  request.facts["--corpus"] = FactOfPath(settings.mining.corpus);
  request.check = [&](int64_t ranks) {
    if (!settings.mining.is_asked_for()) RefuseSharedPipe(ranks, "--input", settings.input);
  };
  return RunEngine(request, run, [&](const EngineProcess& process) {
    const auto work = settings.mining.is_asked_for() ? RunMining : RunEmbed;
    run->summary.update(
        work(BuiltInFamilies(), settings, process.setup, process.world, run->common.progress));
    return 0;
  });
}

}  // namespace
}  // namespace trainwright

int main(int argc, char** argv) {
  trainwright::PrepareDeterminism();
  trainwright::EmbedSettings settings;
  return trainwright::RunTool(
      argc, argv, trainwright::EmbedInfo(),
      [&](CLI::App& app) { trainwright::DefineEmbedOptions(app, &settings); },
      [&](trainwright::ToolRun& run) {
        return trainwright::Run(settings, std::vector<std::string>(argv, argv + argc), &run);
      });
}
