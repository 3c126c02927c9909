#include "lib/train/profile_recorder.h"

#include <utility>

#include "lib/base/units.h"

namespace trainwright {

ProfileRecorder::ProfileRecorder(int64_t steps, int64_t first_step, int64_t total_steps,
                                 std::unique_ptr<ActivitySource> source, std::string trace_path,
                                 RunListener* listener)
    : profiler_(steps, first_step, total_steps, std::move(source)),
      trace_path_(std::move(trace_path)),
      listener_(listener) {
  const int64_t left = profiler_.end() - profiler_.begin();
  if (left == steps) return;
  listener_->Warn("--profile " + std::to_string(steps) + " times " +
                  FormatNumberOf(static_cast<uint64_t>(left), "step") + ": the run has no more left");
}

void ProfileRecorder::EndStep(bool last) {
  if (profiler_.EndStep(last)) Finish();
}

void ProfileRecorder::Finish() {
  if (std::exchange(finished_, true)) return;
  if (profiler_.timed()) {
    std::string trace_problem;
    const StepProfile profile = profiler_.Finish(trace_path_, &trace_problem);
    listener_->RecordProfile(profile, trace_problem);
  } else if (profiler_.begin() < profiler_.end()) {
    listener_->Warn("--profile timed no step: the process ended before step " +
                    std::to_string(profiler_.begin()));
  }
}

}  // namespace trainwright
