#include "lib/formats/chunk_range.h"

#include <vector>

#include "lib/base/error.h"
#include "lib/base/signals.h"

namespace trainwright {
namespace {

struct PassFrame {
  std::vector<Chunk> chunks;  ///< none of a frame that was skipped
  uint64_t next_chunk = 0;    ///< the first one behind the frame
  bool skipped = false;
};

/// The frame that begins with `chunk`.
PassFrame ReadPassFrame(const ShardSet& set, uint64_t chunk, bool skip_bad) {
  PassFrame frame;
  try {
    uint64_t first_chunk = 0;
    frame.chunks = set.ReadFrameOf(chunk, &first_chunk);
    frame.next_chunk = first_chunk + frame.chunks.size();
  } catch (const Error& error) {
    if (!skip_bad || error.code() != ErrorCode::kBadInput) throw;
    const ChunkLocation location = LocateChunk(set, chunk);
    frame.next_chunk = location.first_chunk + set.shards()[location.shard].frames[location.frame].chunks;
    frame.skipped = true;
  }
  return frame;
}

}  // namespace

uint64_t VisitChunks(const ShardSet& set, const ChunkRange& range, bool skip_bad,
                     const std::function<bool(uint64_t, const Chunk&)>& visit) {
  uint64_t frames_skipped = 0;
  const uint64_t end = range.first_chunk + range.chunks;
  for (uint64_t next = range.first_chunk; next < end;) {
    ThrowIfStopped();
    const PassFrame frame = ReadPassFrame(set, next, skip_bad);
    frames_skipped += frame.skipped ? 1 : 0;
    for (size_t i = 0; i < frame.chunks.size(); ++i) {
      if (!visit(next + i, frame.chunks[i])) return frames_skipped;
    }
    next = frame.next_chunk;
  }
  return frames_skipped;
}

}  // namespace trainwright
