#include "lib/loading/window_pool.h"

#include <utility>

namespace trainwright {

TokenRun WindowPool::Take(uint32_t vocab_size) {
  const std::lock_guard lock(mutex_);
  if (runs_.empty()) return TokenRun(vocab_size);
  TokenRun run = std::move(runs_.back());
  runs_.pop_back();
  kept_bytes_ -= run.capacity_bytes();
  return run;
}

void WindowPool::GiveBack(TokenRun run) {
  run.clear();
  const std::lock_guard lock(mutex_);
  if (runs_.size() == kMostKept) return;
  kept_bytes_ += run.capacity_bytes();
  runs_.push_back(std::move(run));
}

std::shared_ptr<const SampleWindow> WindowPool::Share(const std::shared_ptr<WindowPool>& pool,
                                                      SampleWindow window) {
  const size_t size_bytes = window.size_bytes();
  auto own = std::make_unique<SampleWindow>(std::move(window));
  pool->CountUsed(size_bytes);
  return {own.release(), [pool, size_bytes](SampleWindow* used) {
            pool->GiveBack(std::move(used->tokens));
            delete used;
            pool->CountUsed(-size_bytes);
          }};
}

size_t WindowPool::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return kept_bytes_ + used_bytes_;
}

void WindowPool::CountUsed(size_t more_bytes) {
  const std::lock_guard lock(mutex_);
  used_bytes_ += more_bytes;
}

}  // namespace trainwright
