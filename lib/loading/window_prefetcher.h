/// Builds the windows that will be wanted next while the present one is in use.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/formats/shard_set.h"
#include "lib/io/ordered_workers.h"
#include "lib/loading/loader_options.h"
#include "lib/loading/sample_order.h"
#include "lib/loading/window_builder.h"

namespace trainwright {

/// One user thread; its worker threads live as long as it does.
class WindowPrefetcher {
 public:
  /// \param set for messages
  /// \param set, order, builder outlive the prefetcher
  /// \throws Error{kUsage} on options out of range
  WindowPrefetcher(const ShardSet* set, const SampleOrder* order, WindowBuilder* builder,
                   const LoaderOptions& options);
  /// Chunks that stay out from the first window on; before the first Take.
  void set_known_bad(const std::set<uint64_t>& chunks);
  /// The window, when it is there; those before it that were built ahead are thrown away.
  /// \param skipped chunks that stay out, where the window is built now; one that was built ahead may hold
  ///     them
  /// \throws as WindowBuilder::Build; Error{kIo} naming the chunk where the wait is longer than may be
  BuiltWindow Take(WindowId wanted, const std::set<uint64_t>& skipped);
  /// Keeps as many windows under way as may be, from `next` on when there are none.
  void BuildAhead(WindowId next);
  /// Under way or ready.
  size_t windows_ahead() const { return ahead_.size(); }

 private:
  /// What a worker is at.
  struct Reading {
    std::atomic<uint64_t> number = 0;  // of the window
    ReadingMark chunk = 0;
  };
  /// Waits for the window at the head of the queue, and says what for when that takes long.
  void Await(WindowId wanted);
  /// "chunk 5 (shard 0, frame 5, byte 1005)": what a worker reads for the window, or its name.
  std::string WhatIsRead(WindowId wanted) const;
  std::string PlaceOf(uint64_t chunk) const;

  const ShardSet* set_;
  const SampleOrder* order_;
  WindowBuilder* builder_;
  const LoaderOptions options_;
  std::vector<Reading> reading_;  // a worker each
  std::set<uint64_t> known_bad_;  // constant once workers read
  std::deque<WindowId> ahead_;    // the windows that the workers build or have ready, in order
  // Last: joins before the members it reads are gone. Absent without workers.
  std::optional<OrderedWorkers<WindowId, BuiltWindow>> workers_;
};

}  // namespace trainwright
