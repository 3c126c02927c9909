#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/device/determinism.h"
#include "lib/eval/embed_job.h"
#include "lib/eval/mining.h"
#include "lib/eval/rank_input.h"
#include "lib/model/built_in_families.h"
#include "tools/embed_options.h"
#include "tools/engine_ranks.h"

namespace trainwright {
namespace {

bool IsMining(const EmbedSettings& settings) {
  return !settings.mining.records.empty();
}

void CheckMining(const EmbedSettings& settings) {
  if (!IsMining(settings)) {
    if (settings.mining.corpus.empty()) return;
    throw Error(ErrorCode::kUsage, "--corpus", "has a meaning only with --mine-negatives", "",
                "texts to embed are given by --input");
  }
  if (settings.input != "-") {
    throw Error(ErrorCode::kUsage, "--input", "has no meaning with --mine-negatives", "",
                "texts to take negatives from are given by --corpus");
  }
  if (!settings.context_cache.empty()) {
    throw Error(ErrorCode::kUsage, "--context-cache", "has no meaning with --mine-negatives");
  }
  if (settings.resume) throw Error(ErrorCode::kUsage, "--resume", "has no meaning with --mine-negatives");
  if (settings.format != "auto" && settings.format != "jsonl") {
    throw Error(ErrorCode::kUsage, "--format", "has to be jsonl with --mine-negatives, which writes records");
  }
  if (settings.mining.first_place > settings.mining.last_place) {
    throw Error(ErrorCode::kUsage, "--first-place",
                std::to_string(settings.mining.first_place) + " lies behind --last-place " +
                    std::to_string(settings.mining.last_place));
  }
}

int Run(const EmbedSettings& settings, const std::vector<std::string>& argv, ToolRun* run) {
  CheckMining(settings);
  const EmbeddingSettings& embedding = settings.embedding;
  const EngineRequest request = {.argv = argv,
                                 .nproc = embedding.nproc,
                                 .dist_timeout_s = embedding.dist_timeout_s,
                                 .process = {.threads = embedding.threads, .device = embedding.device},
                                 .check = [&](int64_t ranks) {
                                   if (!IsMining(settings))
                                     RefuseSharedPipe(ranks, "--input", settings.input);
                                 }};
  return RunEngine(request, run, [&](const EngineProcess& process) {
    const auto work = IsMining(settings) ? RunMining : RunEmbed;
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
