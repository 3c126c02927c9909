/// The order of training apart from what is cut: epochs of windows of chunks, and the samples of a window in
/// an order of their own. Epoch e visits the chunks in the order of lib/loading/chunk_order.h; a window of
/// `window_chunks` consecutive slots of that order is cut into samples, and the samples of the window are
/// permuted by a second key. Where rules say that an epoch is longer than the samples it has
/// (lib/loading/draw_rules.h), windows of samples that are drawn again follow. The definition, with test
/// vectors: man/trainwright-sample-order.5.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/formats/shard_set.h"
#include "lib/loading/chunk_order.h"
#include "lib/loading/draw_rules.h"
#include "lib/loading/sample_window.h"

namespace trainwright {

class SampleCutter;

/// Part of the order's definition. No batch size, since no order depends on one.
inline constexpr uint64_t kLengthGroupSamples = 64;

struct SampleOrderOptions {
  uint64_t seed = 0;
  uint64_t window_chunks = 64;        ///< part of the order's definition
  uint64_t block_chunks = 1;          ///< chunks that stay together, see ChunkOrderOptions
  std::vector<OrderedSet> sets = {};  ///< what of the shard set is read and mixed how; empty: all, as one
  bool shuffle = true;                ///< false: stored order (evaluation), still endless
  /// Whether a window's samples come in groups of kLengthGroupSamples of about one length. Needs `shuffle`.
  bool group_by_length = false;
  bool numbered = false;  ///< whether cursors count samples: Sample::ordinal. No part of the order
  DrawRules rules = {};   ///< with an index: that of `sets`, whose weights are their chunks
};

struct WindowId {
  uint64_t epoch = 0;
  uint64_t window = 0;  ///< within the epoch
  bool operator==(const WindowId&) const = default;
};

/// Immutable and thread-safe.
class SampleOrder {
 public:
  /// \param chunks of the shard set, >= 1
  /// \throws Error{kUsage} on options < 1, and as SampleDraws
  SampleOrder(const SampleOrderOptions& options, uint64_t chunks);
  const ChunkOrder& chunk_order() const { return chunk_order_; }
  bool numbered() const { return options_.numbered; }
  /// Null: no rules.
  const SampleDraws* rules() const { return rules_ ? &*rules_ : nullptr; }
  /// Of an epoch.
  uint64_t windows() const { return windows_of_chunks() + windows_of_draws(); }
  /// Whether the window's samples are drawn one by one, and not with the chunks that they lie in.
  bool IsDrawn(WindowId id) const { return id.window >= windows_of_chunks(); }
  WindowId After(WindowId id) const;
  /// How far a place of a window is in its epoch: by slots, or where samples are drawn, too, by windows.
  /// \param in_window the share of the window that comes before the place, below 1
  double ShareBefore(WindowId id, double in_window) const;
  /// How many windows of the endless stream come before it.
  uint64_t NumberOf(WindowId id) const { return id.epoch * windows() + id.window; }
  /// Where the window's slots lead, in the order of the slots; of one that is not drawn.
  std::vector<ChunkDraw> DrawsOf(WindowId id) const;
  /// The samples of one that is drawn, in the order of the stream.
  std::vector<SampleDraws::Draw> ExtraOf(WindowId id) const;
  /// Puts samples that are in the order of the slots into the order of the stream. O(n log n) where they
  /// are grouped by length, else O(n).
  void Permute(WindowId id, std::vector<SampleWindow::Entry>* samples) const;
  /// Identity of the order: changes whenever the data, seed or cutting does.
  std::string Fingerprint(const ShardSet& set, const SampleCutter& cutter) const;

 private:
  uint64_t windows_of_chunks() const;
  uint64_t windows_of_draws() const;

  SampleOrderOptions options_;
  ChunkOrder chunk_order_;
  std::optional<SampleDraws> rules_;
};

}  // namespace trainwright
