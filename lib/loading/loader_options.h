/// How windows are made ready, and what that took. No part of the order of training.
#pragma once

#include <cstdint>
#include <memory>

namespace trainwright {

class SampleIndexes;

struct LoaderOptions {
  int workers = 1;   ///< threads that decode and cut ahead; 0: the caller's does, when it needs a window
  int prefetch = 1;  ///< windows kept under way or ready, a worker
  int64_t cache_bytes = 0;       ///< of decoded frames that are kept, least recently used out first
  uint64_t skip_bad_chunks = 0;  ///< most chunks that may be unreadable: others take their places
  double stall_warning_s = 10;   ///< after this long without the window that is waited for, and each doubling
  double stall_limit_s = 0;      ///< after this long the wait is an error; 0: never. Needs workers
  /// Where samples are counted before they are read: of those who opened the data before; null: of nobody.
  std::shared_ptr<SampleIndexes> indexes = {};
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

}  // namespace trainwright
