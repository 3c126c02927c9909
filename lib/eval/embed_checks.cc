#include "lib/eval/embed_checks.h"

#include <string>

#include "lib/base/error.h"

namespace trainwright {

void CheckEmbedSettings(const EmbedSettings& settings) {
  const MiningSettings& mining = settings.mining;
  if (!mining.is_asked_for()) {
    if (mining.corpus.empty()) return;
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
  if (mining.first_place > mining.last_place) {
    throw Error(
        ErrorCode::kUsage, "--first-place",
        std::to_string(mining.first_place) + " lies after --last-place " + std::to_string(mining.last_place));
  }
}

}  // namespace trainwright
