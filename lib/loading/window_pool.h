/// Memory of windows that are no longer used, for those to come: getting it again from the system would cost
/// a page fault every 4 KiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "lib/loading/sample_window.h"
#include "lib/loading/token_run.h"

namespace trainwright {

/// Counts what windows in use take, and what is kept. Thread-safe.
class WindowPool {
 public:
  /// An empty run, with memory where some is kept.
  /// \param vocab_size all ids lie below it; the same in all calls
  TokenRun Take(uint32_t vocab_size);
  void GiveBack(TokenRun run);
  /// The window, counted until nobody uses it any more. Samples may keep it longer than the loader lives.
  static std::shared_ptr<const SampleWindow> Share(const std::shared_ptr<WindowPool>& pool,
                                                   SampleWindow window);
  size_t held_bytes() const;

 private:
  void CountUsed(size_t more_bytes);

  static constexpr size_t kMostKept = 2;
  mutable std::mutex mutex_;
  std::vector<TokenRun> runs_;
  size_t kept_bytes_ = 0, used_bytes_ = 0;
};

}  // namespace trainwright
