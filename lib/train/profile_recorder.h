/// Times the steps that --profile asks for and hands what they took to the records of the run.
///
/// Not thread-safe: the training thread's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/profile/device_activity.h"
#include "lib/train/run_listener.h"
#include "lib/train/step_profiler.h"

namespace trainwright {

class ProfileRecorder {
 public:
  /// Warns where the run has fewer steps left than are asked for.
  /// \param steps, first_step, total_steps, source as in StepProfiler
  /// \param trace_path of the file
  /// \param listener outlives this
  ProfileRecorder(int64_t steps, int64_t first_step, int64_t total_steps,
                  std::unique_ptr<ActivitySource> source, std::string trace_path, RunListener* listener);
  /// \throws Error{kDevice} as StepProfiler
  void BeginStep(int64_t step) { profiler_.BeginStep(step); }
  /// \param last whether no other step follows in this process
  void EndStep(bool last);
  /// Where the process takes no more steps: records those that were timed, unless they are, and warns where
  /// none was.
  void Finish();

 private:
  StepProfiler profiler_;
  std::string trace_path_;
  RunListener* listener_;
  bool finished_ = false;
};

}  // namespace trainwright
