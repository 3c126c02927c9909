#include "lib/loading/skipped_chunks.h"

#include <algorithm>
#include <string>

#include "lib/base/log.h"

namespace trainwright {

void SkippedChunks::TakeOver(const std::vector<BadChunk>& found) {
  for (const BadChunk& bad : found) {
    if (chunks_.contains(bad.chunk)) continue;
    if (chunks_.size() >= most_) {
      throw Error(ErrorCode::kBadInput, bad.error.object(), bad.error.problem(), bad.error.place(),
                  "chunk " + std::to_string(bad.chunk) + " is number " + std::to_string(chunks_.size() + 1) +
                      " that cannot be read; --skip-bad-chunks allows " + std::to_string(most_));
    }
    chunks_.insert(bad.chunk);
    warnings_.push_back(std::string(bad.error.what()) + ": another chunk takes the place of chunk " +
                        std::to_string(bad.chunk) + " (" + std::to_string(chunks_.size()) + " of at most " +
                        std::to_string(most_) + ")");
    LogCommonWarning(warnings_.back());
  }
}

void SkippedChunks::Restore(const std::vector<uint64_t>& chunks) {
  if (chunks.size() > most_) {
    throw Error(ErrorCode::kUsage, "--skip-bad-chunks",
                "the run has left out " + std::to_string(chunks.size()) + " chunks that could not be read",
                "", "give at least --skip-bad-chunks " + std::to_string(chunks.size()));
  }
  chunks_ = {chunks.begin(), chunks.end()};
}

bool SkippedChunks::HoldsAny(const std::vector<uint64_t>& chunks) const {
  return std::any_of(chunks.begin(), chunks.end(), [&](uint64_t chunk) { return chunks_.contains(chunk); });
}

}  // namespace trainwright
