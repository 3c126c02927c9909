/// Which of the ranks that are watched have stopped to beat.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trainwright {

class BeatWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// \param ranks that are watched
  /// \param patience_s for which the beat of a living rank may stay the same
  BeatWatch(std::vector<int64_t> ranks, double patience_s, Clock::time_point now);
  /// Takes the beats as they are now. Where the watcher itself was away for long (stopped, as a whole job is
  /// by a terminal), all ranks get their time again.
  /// \param beats in the order of the ranks
  /// \returns the ranks whose beat has not changed for longer than the patience
  std::vector<int64_t> Silent(const std::vector<std::string>& beats, Clock::time_point now);

 private:
  const std::vector<int64_t> ranks_;
  const std::chrono::duration<double> patience_;
  std::vector<std::string> last_;
  std::vector<Clock::time_point> changed_;
  Clock::time_point looked_;
};

}  // namespace trainwright
