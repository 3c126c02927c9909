/// An endless stream of samples from a shard set, the same for every thread count, batch size and world size.
///
/// Sample i of the stream is a pure function of (set, order, cutter), the state is one cursor and the chunks
/// that were left out, and of a set that is not mixed with others every record is seen once an epoch. What a
/// sample is, the cutter says; the loader knows chunks, windows and their order (lib/loading/sample_order.h).
/// A run may have several loaders. One user thread each; windows are decoded and cut ahead by worker threads,
/// which live as long as the loader and change nothing but when a sample is ready.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/formats/shard_set.h"
#include "lib/loading/chunk_order.h"
#include "lib/loading/loader_options.h"
#include "lib/loading/loader_state.h"
#include "lib/loading/sample_cutter.h"
#include "lib/loading/sample_order.h"
#include "lib/loading/sample_window.h"
#include "lib/loading/skipped_chunks.h"

namespace trainwright {

class WindowBuilder;
class WindowPrefetcher;
struct BuiltWindow;

/// What one epoch of a loader holds.
struct EpochCounts {
  uint64_t samples = 0, tokens = 0, labels = 0;
  uint64_t longest_tokens = 0;     ///< of its samples; 0: not known
  uint64_t unreadable_chunks = 0;  ///< whose places others take; all numbers here include what those bring
  uint64_t stored_tokens = 0;      ///< of the chunks that it reads, in samples or not; 0: not known
};

class SampleLoader {
 public:
  /// \param set outlives the loader
  /// \param cutter made for the set's records
  /// \throws Error{kBadInput} when no sample holds a label; Error{kUsage} on options < 1
  SampleLoader(const ShardSet* set, std::unique_ptr<const SampleCutter> cutter,
               const SampleOrderOptions& order, const LoaderOptions& loader = {});
  virtual ~SampleLoader();
  /// The next sample; the stream never ends.
  /// \throws what reading the shards throws; of a chunk that cannot be read Error{kBadInput} with shard,
  ///     frame and byte, or a warning where it may be skipped
  Sample Next();
  /// The next `count` samples, for an optimizer step. With `drop_last` all are of one epoch: when fewer than
  /// `count` are left of an epoch they are skipped, and the step begins the next one. Each process reads the
  /// whole step and takes its share (see ShareOf), so the cursor is the same in all of them and says nothing
  /// of their number.
  /// \throws Error{kBadInput} when a whole epoch has fewer; after any error the cursor is where it was
  std::vector<Sample> NextStep(int64_t count, bool drop_last);
  /// Where Next() will read. Consumed, not prefetched.
  SampleCursor cursor() const { return cursor_; }
  /// \throws Error{kBadInput} when the set has no such window; a sample beyond its window is reported by
  /// Next()
  void Seek(const SampleCursor& cursor);
  /// How far the cursor is, in epochs; whole numbers are exact, between them chunks count evenly, and
  /// so do the samples of a window.
  double epochs() const;
  /// Whether `count` more samples are left of the epoch that Next() will read from. Where the window at hand
  /// has too few, the next ones are read for it, and kept until Next() comes to them. One that cannot be read
  /// counts as enough: Next() says what is wrong.
  bool HoldsInEpoch(int64_t count);
  /// Counts an epoch by decoding all that the order reads once; one that its rules describe is known. Chunks
  /// that cannot be read and may be skipped count as the substitutes of the first pass. Of
  /// streams that give a run's steps together (DrawRules::run_epoch_samples) it is the run's.
  /// \throws Error{kInterrupted, kTerminated} after a stop signal; Error{kBadInput} when chunks cannot be
  ///     read and may not be skipped, or those that can be hold no sample
  EpochCounts CountEpoch() const;
  /// Whether its samples have numbers: Sample::ordinal.
  bool numbered() const { return order_.numbered(); }
  /// Null: no rules.
  const SampleDraws* rules() const { return order_.rules(); }
  LoaderCounts loader_counts() const { return counts_; }
  /// The chunks that others took the places of so far, for the checkpoint: in a resumed run they stay out
  /// even if they can be read again.
  std::vector<uint64_t> bad_chunks() const;
  /// What was logged of chunks that others took the places of, since this was asked last.
  std::vector<std::string> TakeWarnings() { return skipped_.TakeWarnings(); }
  /// Before the first sample is read.
  /// \throws Error{kUsage} when there are more than may be
  void set_bad_chunks(const std::vector<uint64_t>& chunks);
  const ChunkOrder& order() const { return order_.chunk_order(); }
  /// Identity of the order: changes whenever the data, seed or cutting does. For the checkpoint.
  std::string fingerprint() const { return order_.Fingerprint(*set_, *cutter_); }
  /// Cursor, bad chunks and fingerprint.
  LoaderState state() const;
  /// Takes over cursor and bad chunks, before the first sample is read.
  /// \throws as Seek and set_bad_chunks; Error{kBadInput} when the state is one of another order
  void Restore(const LoaderState& state);

 private:
  /// A window that was read before Next() came to it.
  struct WindowAhead {
    WindowId id;
    std::unique_ptr<BuiltWindow> built;
  };
  /// Makes the window of the cursor the loaded one and lets the workers go on after it.
  void LoadWindow();
  /// The window, read now or before. Those that were read before it, and that nobody came to, are dropped.
  BuiltWindow TakeWindow(WindowId wanted);
  /// Reads a window before Next() comes to it, the first time that it is asked for.
  const BuiltWindow& LookAhead(WindowId id);
  /// The window without what was bad in an earlier one: that stays out although this one could read it, for a
  /// run that is resumed between the two knows no better.
  BuiltWindow WithoutSkipped(WindowId id, BuiltWindow built);
  /// What NextStep returns; an error leaves the cursor somewhere.
  std::vector<Sample> TakeStep(int64_t count, bool drop_last);
  /// Says once what became of records that did not fit.
  void TellCuts();
  WindowId WindowOfCursor() const { return {cursor_.epoch, cursor_.window}; }
  bool HasLabel() const;
  /// The first pass over a set of the order.
  EpochCounts CountPass(uint32_t set) const;
  /// Of an epoch whose samples are known; their tokens and labels as they are on average.
  EpochCounts CountByRules() const;
  /// \throws Error{kBadInput} naming the set of the order when none of its chunks can be read
  void RequireReadable(uint32_t set, const std::vector<bool>& readable) const;
  /// Calls use(samples) with what each chunk of a set is cut into, until it says that it wants no more. What
  /// cannot be read counts as empty where it may be skipped.
  template <typename Use>
  void CutChunks(const OrderedSet& set, const Use& use) const;

  const ShardSet* set_;
  const std::unique_ptr<const SampleCutter> cutter_;
  const SampleOrder order_;
  const LoaderOptions options_;
  SampleCursor cursor_;
  SkippedChunks skipped_;                       // of the windows in use so far
  std::shared_ptr<const SampleWindow> window_;  // null until one was loaded
  std::optional<WindowId> loaded_;              // which one it is
  std::deque<WindowAhead> windows_ahead_;       // of HoldsInEpoch, in the order of the stream
  uint64_t epoch_of_last_ = 0;                  // of the sample handed out last
  bool told_cuts_ = false;
  LoaderCounts counts_;
  std::unique_ptr<WindowBuilder> builder_;
  std::unique_ptr<WindowPrefetcher> prefetcher_;  // last: its workers use the other members
};

}  // namespace trainwright
