#include "lib/optim/update_graph.h"

#include <chrono>
#include <exception>
#include <utility>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/gemm_operations.h"
#include "lib/base/host_timeline.h"
#include "lib/base/log.h"
#include "lib/base/profile_scope.h"
#include "lib/device/torch_words.h"

namespace trainwright {

UpdateGraph::UpdateGraph(std::unique_ptr<GraphRecorder> recorder, bool required, std::function<bool()> wanted)
    : recorder_(std::move(recorder)), required_(required), wanted_(std::move(wanted)) {
  TRAINWRIGHT_CHECK(recorder_ != nullptr);
}

bool UpdateGraph::Record(const std::function<void()>& update) {
  const ProfileScope scope("record_graph", ProfilePart::kOther);
  const auto start = std::chrono::steady_clock::now();
  try {
    HostTimeline pieces(&SteadyNanoseconds, /*most_events=*/0);
    const ProfiledThread of_the_graph(&pieces);  // the host does none of it
    graph_ = recorder_->Record(update);
    gemm_operations_ = GemmOperations(pieces);
    ++counts_.recorded;
  } catch (const std::exception& exception) {
    // The step's passes are over: smaller micro-batches are of no use to it.
    if (required_ && !IsLackOfMemory(exception)) RefuseUnrecorded("the update of a step", exception);
    counts_.off = WordsOf(exception);
    LogWarning("the update of a step cannot be recorded: " + counts_.off + "; going on kernel by kernel");
  }
  counts_.record_s += SecondsSince(start);
  return graph_ != nullptr;
}

void UpdateGraph::RunOnce(const std::string& why, const std::function<void()>& update) {
  counts_.off = why;
  ++counts_.queued;
  update();
}

void UpdateGraph::Run(const UpdateKind& kind, const std::function<void()>& update) {
  const bool again = last_ == kind;
  if (!again) graph_.reset();
  last_ = kind;
  const bool may_record = again && counts_.off.empty() && (!wanted_ || wanted_());
  const bool repeats = graph_ != nullptr || (may_record && Record(update));
  if (!repeats) {
    ++counts_.queued;
    return update();
  }
  const ProfileScope scope("launch_graph", ProfilePart::kOptimizer);
  graph_->Launch();
  if (gemm_operations_ > 0) {  // done by the device alone: what they do counts, in no time of the host
    const ProfileScope gemms("matmul of graphs", ProfilePart::kGemm, gemm_operations_);
  }
  ++counts_.launched;
}

}  // namespace trainwright
