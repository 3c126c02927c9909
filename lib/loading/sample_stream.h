/// The order of training: an endless stream of samples from a shard set, the same for every thread count,
/// batch size and world size.
///
/// A sample is at most `sequence_tokens` tokens: the segments of a chunk, cut where they exceed it, laid end
/// to end as long as they fit (next-fit in stored order). Epoch e visits the chunks in the order of
/// lib/loading/chunk_order.h; a window of `window_chunks` consecutive chunks of that order is cut into
/// samples, and the samples of the window are permuted by a second key. Of sft records under
/// LossOn::kAssistant, samples without a label (a long prompt that was cut) are left out. So sample i of the
/// stream is a pure function of (set, options), the state is one cursor, and of a set that is not mixed with
/// others every position of every document is seen once an epoch. The definition, with test vectors:
/// man/trainwright-sample-order.5. One user thread; windows are decoded and cut ahead by worker threads,
/// which live as long as the stream and change nothing but when a sample is ready.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/formats/shard_set.h"
#include "lib/loading/chunk_order.h"
#include "lib/loading/document_split.h"
#include "lib/loading/sample_window.h"

namespace trainwright {

/// Which tokens of sft records become labels; of lm records all do. The names of --loss-on.
enum class LossOn : uint8_t {
  kAssistant,  ///< those that the records say: what the assistant says, and the end of its turn
  kAll,        ///< every token that follows another of its conversation
};
/// \throws Error{kUsage} naming --loss-on
LossOn ParseLossOn(const std::string& name);
const char* NameOf(LossOn loss_on);

struct SampleStreamOptions {
  int64_t sequence_tokens = 512;
  uint64_t seed = 0;
  uint64_t window_chunks = 64;        ///< part of the order's definition
  uint64_t block_chunks = 1;          ///< chunks that stay together, see ChunkOrderOptions
  std::vector<OrderedSet> sets = {};  ///< what of the shard set is mixed how; empty: all of it, as one
  bool shuffle = true;                ///< false: stored order (evaluation), still endless
  LossOn loss_on = LossOn::kAssistant;
  std::optional<DocumentSplit> split;  ///< whose held-out documents the stream leaves out
};

/// How windows are made ready. No part of the order.
struct LoaderOptions {
  int workers = 1;   ///< threads that decode and cut ahead; 0: the caller's does, when it needs a window
  int prefetch = 1;  ///< windows kept under way or ready, a worker
  int64_t cache_bytes = 0;       ///< of decoded frames that are kept, least recently used out first
  uint64_t skip_bad_chunks = 0;  ///< most chunks that may be unreadable: others take their places
  double stall_warning_s = 10;   ///< after so long without the window that is waited for, and each doubling
};

/// What the loader did so far.
struct LoaderCounts {
  double wait_s = 0;    ///< that the caller waited for windows, or without workers took to make them
  int64_t windows = 0;  ///< handed out
  /// Of windows in use, counting those ahead as the present one, of memory kept for others, and of frames
  /// that are kept.
  int64_t most_held_bytes = 0;
  int64_t most_windows_ahead = 0;  ///< most that were under way or ready beyond the one in use
};

/// Where the stream stands; goes into checkpoints.
struct SampleCursor {
  uint64_t epoch = 0;
  uint64_t window = 0;  ///< within the epoch
  uint64_t sample = 0;  ///< within the window
  bool operator==(const SampleCursor&) const = default;
};

/// What one epoch of a stream holds.
struct EpochCounts {
  uint64_t samples = 0, tokens = 0, labels = 0;
};

class SampleStream {
 public:
  /// \param set outlives the stream
  /// \throws Error{kBadInput} when no sample holds a label; Error{kUsage} on options < 1
  SampleStream(const ShardSet* set, const SampleStreamOptions& options, const LoaderOptions& loader = {});
  ~SampleStream();
  /// The next sample; the stream never ends.
  /// \throws what reading the shards throws; of a chunk that cannot be read Error{kBadInput} with shard,
  ///     frame and byte, or a warning where it may be skipped
  Sample Next();
  /// The next `count` samples, for an optimizer step. With `drop_last` all are of one epoch: when fewer than
  /// `count` are left of an epoch they are skipped, and the step begins the next one.
  /// \throws Error{kBadInput} when a whole epoch has fewer; after any error the cursor is where it was
  std::vector<Sample> NextStep(int64_t count, bool drop_last);
  /// The share of process `rank` of `world` in a step of `count` samples: those whose number in the step is
  /// `rank` modulo `world`. The cursor moves by the whole step, so it is the same in all processes and says
  /// nothing of their number.
  /// \throws as NextStep
  std::vector<Sample> NextShare(int64_t count, bool drop_last, int64_t rank, int64_t world);
  /// Where Next() will read. Consumed, not prefetched.
  SampleCursor cursor() const;
  /// \throws Error{kBadInput} when the set has no such window; a sample beyond its window is reported by
  /// Next()
  void Seek(const SampleCursor& cursor);
  /// How far the cursor is, in epochs; whole numbers are exact, between them windows and samples count
  /// evenly.
  double epochs() const;
  /// Counts an epoch by decoding the whole set once.
  /// \throws Error{kInterrupted, kTerminated} after a stop signal
  EpochCounts CountEpoch() const;
  LoaderCounts loader_counts() const;
  /// The chunks that others took the places of so far, for the checkpoint: in a resumed run they stay out
  /// even if they can be read again.
  std::vector<uint64_t> bad_chunks() const;
  /// Before the first sample is read.
  /// \throws Error{kUsage} when there are more than may be
  void set_bad_chunks(const std::vector<uint64_t>& chunks);
  const ChunkOrder& order() const;
  /// Identity of the order: changes whenever the data, seed or cutting does. For the checkpoint.
  std::string fingerprint() const;

 private:
  struct Impl;
  std::vector<Sample> TakeStep(int64_t count, bool drop_last);
  std::unique_ptr<Impl> impl_;
};

}  // namespace trainwright
