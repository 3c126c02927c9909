#include "lib/base/host_timeline.h"

#include <algorithm>
#include <chrono>

namespace trainwright {

int64_t SteadyNanoseconds() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

HostTimeline::HostTimeline(int64_t (*now)() noexcept, size_t most_events)
    : now_(now), most_events_(most_events) {}

void HostTimeline::Begin(const char* name, ProfilePart part, int64_t operations, bool opaque,
                         int64_t number) {
  if (muted_ > 0 || (!open_.empty() && open_.back().opaque)) {
    ++muted_;
    return;
  }
  Open open = {.event = {.name = name,
                         .part = part,
                         .depth = static_cast<int32_t>(open_.size()),
                         .operations = operations,
                         .number = number},
               .opaque = opaque};
  if (events_.size() < most_events_) {
    open.place = events_.size();
    events_.push_back(open.event);
  } else {
    ++events_left_out_;
  }
  open_.push_back(open);
  open_.back().event.start_ns = now_();  // last: what this costs is the outer piece's
  if (open.place != kNoEvent) events_[open.place].start_ns = open_.back().event.start_ns;
}

void HostTimeline::Count(int64_t operations) {
  if (muted_ > 0 || open_.empty()) return;
  Open& innermost = open_.back();
  innermost.event.operations += operations;
  if (innermost.place != kNoEvent) events_[innermost.place].operations += operations;
}

void HostTimeline::End() {
  const int64_t end_ns = now_();
  if (muted_ > 0) {
    --muted_;
    return;
  }
  if (open_.empty()) return;
  const Open ended = open_.back();
  open_.pop_back();
  const int64_t total_ns = end_ns - ended.event.start_ns, self_ns = total_ns - ended.inner_ns;
  if (ended.place != kNoEvent) events_[ended.place].end_ns = end_ns;
  self_ns_[static_cast<size_t>(ended.event.part)] += self_ns;
  HostTotals& totals = TotalsOf(ended.event);
  ++totals.calls;
  totals.self_ns += self_ns;
  totals.total_ns += total_ns;
  totals.operations += ended.event.operations;
  if (!open_.empty()) {
    open_.back().inner_ns += total_ns;
    return;
  }
  if (outermost_pieces_++ == 0) start_ns_ = ended.event.start_ns;
  end_ns_ = end_ns;
  outermost_ns_ += total_ns;
}

HostTotals& HostTimeline::TotalsOf(const HostEvent& event) {
  const auto found = std::find_if(totals_.begin(), totals_.end(), [&](const HostTotals& totals) {
    return totals.part == event.part && totals.name == event.name;
  });
  if (found != totals_.end()) return *found;
  return totals_.emplace_back(HostTotals{.name = event.name, .part = event.part});
}

}  // namespace trainwright
