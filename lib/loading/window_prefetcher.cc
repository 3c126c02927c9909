#include "lib/loading/window_prefetcher.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/units.h"

namespace trainwright {
namespace {

constexpr double kSlice_s = 0.5;
constexpr char kStalledHint[] =
    "look at the storage that the data is on; --resume goes on from the last checkpoint, with the data "
    "copied elsewhere, with fewer --workers, or, where it is slow and no more, with a higher --data-timeout";

}  // namespace

WindowPrefetcher::WindowPrefetcher(const ShardSet* set, const SampleOrder* order, WindowBuilder* builder,
                                   const LoaderOptions& options)
    : set_(set),
      order_(order),
      builder_(builder),
      options_(options),
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
  double waited_s = 0, next_s = options_.stall_warning_s;
  const double limit_s = options_.stall_limit_s;
  for (;;) {
    // In slices: while the whole process was stopped, nobody waited.
    double slice_s = std::min(kSlice_s, next_s - waited_s);
    if (limit_s > 0) slice_s = std::min(slice_s, limit_s - waited_s);
    if (workers_->WaitFor(std::chrono::duration<double>(slice_s))) return;
    waited_s += slice_s;
    const auto wait = [&] {
      return "for " + FormatFixed(waited_s, waited_s < 1 ? 1 : 0) + " s: " + WhatIsRead(wanted) +
             " is not read yet";
    };
    if (limit_s > 0 && waited_s >= limit_s) {
      // Said here too: the error is told behind the end of the worker, which cannot be forced.
      LogWarning("giving up " + wait() + "; the process ends when that call returns");
      throw Error(ErrorCode::kIo, "data", "nothing came " + wait(), "", kStalledHint);
    }
    if (waited_s < next_s) continue;
    next_s *= 2;
    LogWarning("waiting for data " + wait());
  }
}

std::string WindowPrefetcher::WhatIsRead(WindowId wanted) const {
  for (const Reading& worker : reading_) {
    const uint64_t chunk = worker.chunk.load(std::memory_order_relaxed);
    if (chunk > 0 && worker.number.load(std::memory_order_relaxed) == order_->NumberOf(wanted)) {
      return PlaceOf(chunk - 1);
    }
  }
  return "window " + std::to_string(wanted.window) + " of epoch " + std::to_string(wanted.epoch);
}

std::string WindowPrefetcher::PlaceOf(uint64_t chunk) const {
  const ChunkLocation location = LocateChunk(*set_, chunk);
  return "chunk " + std::to_string(chunk) + " (shard " + std::to_string(location.shard) + ", frame " +
         std::to_string(location.frame) + ", byte " + std::to_string(location.offset) + ")";
}

}  // namespace trainwright
