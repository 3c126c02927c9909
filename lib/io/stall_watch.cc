#include "lib/io/stall_watch.h"

#include <chrono>
#include <utility>

#include "lib/base/log.h"
#include "lib/base/units.h"

namespace trainwright {

StallWatch::StallWatch(double stall_s, std::function<std::string()> describe)
    : stall_s_(stall_s), describe_(std::move(describe)), thread_([this] { Watch(); }) {}

StallWatch::~StallWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StallWatch::Progress() {
  const std::lock_guard lock(mutex_);
  ++progress_;  // the watch looks when its time is up: no need to wake it
}

void StallWatch::Watch() {
  std::unique_lock lock(mutex_);
  uint64_t seen = progress_;
  double waited_s = 0, next_s = stall_s_;
  while (
      !changed_.wait_for(lock, std::chrono::duration<double>(next_s - waited_s), [&] { return stopping_; })) {
    if (progress_ != seen) {
      seen = progress_;
      waited_s = 0;
      next_s = stall_s_;
      continue;
    }
    waited_s = next_s;
    next_s *= 2;
    lock.unlock();
    LogWarning("nothing came for " + FormatFixed(waited_s, waited_s < 1 ? 1 : 0) + " s: waiting for " +
               describe_());
    lock.lock();
  }
}

}  // namespace trainwright
