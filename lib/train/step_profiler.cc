#include "lib/train/step_profiler.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lib/base/error.h"
#include "lib/io/byte_sink.h"
#include "lib/io/temporary_file.h"
#include "lib/profile/chrome_trace.h"

namespace trainwright {

StepProfiler::StepProfiler(int64_t steps, int64_t first_step, int64_t total_steps,
                           std::unique_ptr<ActivitySource> source)
    : source_(std::move(source)) {
  const int64_t left = std::max<int64_t>(total_steps - first_step, 0);
  const int64_t warm_up = std::clamp<int64_t>(left - steps, 0, kWarmUpSteps);
  begin_ = first_step + warm_up + 1;
  end_ = begin_ + std::min(steps, left - warm_up);
}

StepProfiler::~StepProfiler() = default;

void StepProfiler::BeginStep(int64_t step) {
  if (!times(step)) return;
  if (first_timed_ == 0) {
    first_timed_ = step;
    if (source_) source_->Start();
    recording_ = source_ != nullptr;
  }
  step_ = step;
  thread_.emplace(&timeline_);
  timeline_.Begin("step", ProfilePart::kOther, /*operations=*/0, /*opaque=*/false, step);
}

bool StepProfiler::EndStep(bool last) {
  if (!thread_) return false;
  const bool ends = last || !times(step_ + 1);
  if (ends && recording_) {
    const ProfileScope scope("wait_for_device", ProfilePart::kOther);
    source_->Wait();
  }
  timeline_.End();
  thread_.reset();
  if (ends) StopSource();
  return ends;
}

void StepProfiler::StopSource() {
  if (!std::exchange(recording_, false)) return;
  activities_ = source_->Stop();
  SortActivities(&activities_);
}

StepProfile StepProfiler::Finish(const std::string& trace_path, std::string* trace_problem) {
  StopSource();  // where the run ended between two steps
  StepProfile profile = SummarizeSteps(timeline_, source_ ? &activities_ : nullptr);
  profile.first_step = first_timed_;
  profile.last_step = step_;
  try {
    std::error_code ignored;  // without the folder the file tells what is wrong
    std::filesystem::create_directories(std::filesystem::path(trace_path).parent_path(), ignored);
    RemoveStaleTemporariesOf(trace_path);
    AtomicFileSink sink(trace_path);
    WriteChromeTrace(timeline_, activities_, &sink);
    sink.Commit();
  } catch (const Error& error) {
    *trace_problem = error.what();
  }
  return profile;
}

}  // namespace trainwright
