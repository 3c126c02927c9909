#include "lib/loading/part_shares.h"

#include "lib/formats/chunk_range.h"

namespace trainwright {
namespace {

uint64_t TokensOf(const ShardSet& set, const ShardSetPart& part) {
  uint64_t tokens = 0;
  for (const ShardInfo& shard : set.shards()) {
    const bool is_of_part =
        shard.first_chunk >= part.first_chunk && shard.first_chunk < part.first_chunk + part.chunks;
    if (is_of_part) tokens += shard.totals.tokens;
  }
  return tokens;
}

}  // namespace

uint64_t VisitShares(const ShardSet& set, const SharedPass& pass,
                     const std::function<uint64_t()>& tokens_used,
                     const std::function<void(const ShardSetPart&, const Chunk&)>& use) {
  uint64_t all_tokens = 0, tokens = 0, frames_skipped = 0;
  for (const ShardSetPart& part : pass.parts) all_tokens += TokensOf(set, part);
  for (const ShardSetPart& part : pass.parts) {
    tokens += TokensOf(set, part);
    const bool last = &part == &pass.parts.back();
    const auto share = static_cast<uint64_t>(static_cast<unsigned __int128>(pass.max_tokens) * tokens /
                                             (all_tokens == 0 ? 1 : all_tokens));
    const uint64_t end = last ? pass.max_tokens : share;
    const uint64_t used_before = tokens_used();
    frames_skipped +=
        VisitChunks(set, {part.first_chunk, part.chunks}, pass.skip_bad, [&](uint64_t, const Chunk& chunk) {
          use(part, chunk);
          const uint64_t used = tokens_used();
          return pass.max_tokens == 0 || used == used_before || used < end;
        });
  }
  return frames_skipped;
}

}  // namespace trainwright
