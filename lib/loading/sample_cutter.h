/// How the records of a chunk become samples. The loader asks a cutter for nothing else, so an objective
/// brings its own way of cutting, and its own kind of records, without an edit there.
#pragma once

#include <cstdint>
#include <string>

#include "lib/formats/shard.h"
#include "lib/loading/sample_window.h"

namespace trainwright {

/// A cutter is made for the records of one set, and its constructor refuses records that it does not know
/// with Error{kBadInput}. Immutable; its functions are thread-safe and pure.
class SampleCutter {
 public:
  virtual ~SampleCutter() = default;
  /// Appends the samples of a chunk to `window`, in the order in which they are stored. A sample's spans lie
  /// next to each other in window->spans, each with all its tokens in window->tokens; spans of no sample may
  /// lie between. What does not fit is counted in window->cuts. What is cut depends on the chunk alone: a
  /// chunk takes the place of another that cannot be read, and a resumed run cuts it again. Throws for lack
  /// of memory only: who read the chunk has checked it.
  virtual void Cut(const Chunk& chunk, SampleWindow* window) const = 0;
  /// Most tokens of a sample, or of one of its spans where the objective takes some of them, >= 1. Part of
  /// the order's identity.
  virtual int64_t sequence_tokens() const = 0;
  /// The rest of what the samples depend on besides the chunks: lines for the order's identity, each with its
  /// line feed. Two cutters that cut differently say different things.
  virtual std::string Identity() const = 0;
  /// Whether these totals alone show that some sample has a label; otherwise the chunks are read until one
  /// has.
  /// \param totals of the set that is cut
  virtual bool HasLabel(const ShardTotals& totals) const = 0;
  /// What is wrong with shards of which no sample has a label: "hold no ..., so there is nothing to learn".
  virtual std::string NothingToLearn() const = 0;
  /// What became of records that did not fit, for people, reported once; empty: nothing to report.
  /// \param counts of the first window that has any
  virtual std::string TellCuts(const CutCounts& /*counts*/) const { return ""; }
};

}  // namespace trainwright
