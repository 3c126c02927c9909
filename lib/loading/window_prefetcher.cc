#include "lib/loading/window_prefetcher.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/units.h"

namespace trainwright {

WindowPrefetcher::WindowPrefetcher(const ShardSet* set, const SampleOrder* order, WindowBuilder* builder,
                                   const LoaderOptions& options)
    : set_(set),
      order_(order),
      builder_(builder),
      stall_warning_s_(options.stall_warning_s),
      reading_(static_cast<size_t>(std::max(1, options.workers))) {
  if (options.workers < 0) throw Error(ErrorCode::kUsage, "--workers", "must be at least 0");
  if (options.prefetch < 1) throw Error(ErrorCode::kUsage, "--prefetch", "must be at least 1 window");
  if (options.workers == 0) return;
  const auto windows_ahead = static_cast<size_t>(options.workers) * static_cast<size_t>(options.prefetch);
  workers_.emplace(options.workers, windows_ahead, [this](int worker, WindowId id) {
    Reading& own = reading_[static_cast<size_t>(worker)];
    own.number.store(order_->NumberOf(id), std::memory_order_relaxed);
    return builder_->Build(id, known_bad_, &own.chunk);
  });
}

void WindowPrefetcher::set_known_bad(const std::set<uint64_t>& chunks) {
  TRAINWRIGHT_CHECK(ahead_.empty());
  known_bad_ = chunks;
}

BuiltWindow WindowPrefetcher::Take(WindowId wanted, const std::set<uint64_t>& skipped) {
  if (!workers_) return builder_->Build(wanted, skipped, &reading_[0].chunk);
  while (!ahead_.empty() && ahead_.front() != wanted) {
    ahead_.pop_front();
    try {
      builder_->Discard(workers_->Pop());
    } catch (const std::exception&) {
      // A window that nobody asked for: if it is ever wanted, it is read, and fails, again.
    }
  }
  BuildAhead(wanted);
  Await(wanted);
  ahead_.pop_front();
  return workers_->Pop();
}

void WindowPrefetcher::BuildAhead(WindowId next) {
  if (!workers_) return;
  while (!workers_->full()) {
    ahead_.push_back(ahead_.empty() ? next : order_->After(ahead_.back()));
    try {
      workers_->Push(ahead_.back());
    } catch (...) {
      ahead_.pop_back();
      throw;
    }
  }
}

void WindowPrefetcher::Await(WindowId wanted) {
  double next_s = stall_warning_s_, waited_s = 0;
  while (!workers_->WaitFor(std::chrono::duration<double>(next_s - waited_s))) {
    waited_s = next_s;
    next_s *= 2;
    std::string what =
        "window " + std::to_string(wanted.window) + " of epoch " + std::to_string(wanted.epoch);
    for (const Reading& worker : reading_) {
      const uint64_t chunk = worker.chunk.load(std::memory_order_relaxed);
      if (chunk > 0 && worker.number.load(std::memory_order_relaxed) == order_->NumberOf(wanted))
        what = PlaceOf(chunk - 1);
    }
    LogWarning("waiting for data for " + FormatFixed(waited_s, waited_s < 1 ? 1 : 0) + " s: " + what +
               " is not read yet");
  }
}

std::string WindowPrefetcher::PlaceOf(uint64_t chunk) const {
  const ChunkLocation location = LocateChunk(*set_, chunk);
  return "chunk " + std::to_string(chunk) + " (shard " + std::to_string(location.shard) + ", frame " +
         std::to_string(location.frame) + ", byte " + std::to_string(location.offset) + ")";
}

}  // namespace trainwright
