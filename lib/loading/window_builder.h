/// Reads the chunks of a window and has them cut into samples, with other chunks in the places of those that
/// cannot be read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "lib/formats/shard_set.h"
#include "lib/loading/frame_cache.h"
#include "lib/loading/sample_cutter.h"
#include "lib/loading/sample_order.h"
#include "lib/loading/skipped_chunks.h"
#include "lib/loading/window_pool.h"

namespace trainwright {

struct BuiltWindow {
  SampleWindow samples;          ///< in the order of the stream
  std::vector<BadChunk> bad;     ///< that others took the places of, in the order they were found
  std::vector<uint64_t> chunks;  ///< that it was cut from
};

/// The chunk that is being read, plus 1, for who waits for it; 0: none.
using ReadingMark = std::atomic<uint64_t>;

/// Thread-safe.
class WindowBuilder {
 public:
  /// \param set, cutter, order outlive the builder
  /// \param cache_bytes of decoded frames that are kept
  /// \param most_bad chunks that may be unreadable in a run
  WindowBuilder(const ShardSet* set, const SampleCutter* cutter, const SampleOrder* order,
                int64_t cache_bytes, uint64_t most_bad);
  /// \param bad chunks that stay out although they may be readable by now
  /// \throws what reading the shards throws; of a chunk that cannot be read Error{kBadInput} with shard,
  ///     frame and byte where none may be skipped
  BuiltWindow Build(WindowId id, const std::set<uint64_t>& bad, ReadingMark* reading);
  /// Takes back the memory of a window that nobody wants.
  void Discard(BuiltWindow built) { pool_->GiveBack(std::move(built.samples.tokens)); }
  /// Hands a window out, see WindowPool::Share.
  std::shared_ptr<const SampleWindow> Share(SampleWindow window) {
    return WindowPool::Share(pool_, std::move(window));
  }
  /// Of windows handed out, of memory kept for others, and of frames.
  int64_t held_bytes() const { return static_cast<int64_t>(pool_->held_bytes()) + frames_.held_bytes(); }

 private:
  class Work;
  class ChunkWork;
  class DrawWork;

  const ShardSet* set_;
  const SampleCutter* cutter_;
  const SampleOrder* order_;
  const uint64_t most_bad_;
  FrameCache frames_;
  const std::shared_ptr<WindowPool> pool_ = std::make_shared<WindowPool>();
};

}  // namespace trainwright
