/// --profile N: which steps of this process are timed, and the results.
///
/// The first steps of a process take memory and fill caches, so kWarmUpSteps come first; where fewer than N
/// steps would be left, there are fewer of them, at last none. Between BeginStep and EndStep of those steps
/// a timeline is attached to the calling thread, and a GPU is recorded from the first of them to the last; it
/// is waited for at the beginning and at the end, so that its work is inside. Nothing that is computed
/// depends on it. Of several ranks the writer's alone is timed: its file says so. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/host_timeline.h"
#include "lib/base/profile_scope.h"
#include "lib/profile/device_activity.h"
#include "lib/profile/step_profile.h"

namespace trainwright {

class StepProfiler {
 public:
  static constexpr int64_t kWarmUpSteps = 2;

  /// \param steps that were asked for
  /// \param first_step steps taken before this process
  /// \param total_steps of the run
  /// \param source of a device; null: all work is the host's
  StepProfiler(int64_t steps, int64_t first_step, int64_t total_steps,
               std::unique_ptr<ActivitySource> source);
  ~StepProfiler();

  /// Steps that are to be timed, by their numbers; none where `begin` is `end`.
  int64_t begin() const { return begin_; }
  int64_t end() const { return end_; }

  /// \param step about to be taken
  /// \throws Error{kDevice} where the device cannot be recorded
  void BeginStep(int64_t step);
  /// After what is due after the step.
  /// \param last whether no other step follows in this process
  /// \returns whether it was the last that is timed: then comes Finish
  bool EndStep(bool last);
  /// What the timed steps took; writes the trace as a file that appears whole or not at all. Once.
  /// \param trace_path whose folder is made
  /// \param trace_problem gets why there is no trace; empty: there is
  StepProfile Finish(const std::string& trace_path, std::string* trace_problem);
  /// Whether any step has been timed.
  bool timed() const { return first_timed_ > 0; }

 private:
  void StopSource();
  bool times(int64_t step) const { return step >= begin_ && step < end_; }

  int64_t begin_, end_;
  std::unique_ptr<ActivitySource> source_;
  HostTimeline timeline_;
  std::optional<ProfiledThread> thread_;  ///< within a step that is timed
  int64_t step_ = 0;                      ///< under way, or the last
  int64_t first_timed_ = 0;               ///< 0: none yet
  bool recording_ = false;                ///< the source is
  std::vector<DeviceActivity> activities_;
};

}  // namespace trainwright
