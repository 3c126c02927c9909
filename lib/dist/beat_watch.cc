#include "lib/dist/beat_watch.h"

#include <utility>

namespace trainwright {

BeatWatch::BeatWatch(std::vector<int64_t> ranks, double patience_s, Clock::time_point now)
    : ranks_(std::move(ranks)),
      patience_(patience_s),
      last_(ranks_.size()),
      changed_(ranks_.size(), now),
      looked_(now) {}

std::vector<int64_t> BeatWatch::Silent(const std::vector<std::string>& beats, Clock::time_point now) {
  const bool was_away = now - looked_ > patience_ / 2;
  looked_ = now;
  std::vector<int64_t> silent;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (was_away || beats[i] != last_[i]) {
      last_[i] = beats[i];
      changed_[i] = now;
    } else if (now - changed_[i] > patience_) {
      silent.push_back(ranks_[i]);
    }
  }
  return silent;
}

}  // namespace trainwright
