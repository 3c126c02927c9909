/// A timeline of two steps with chosen times, and what a device did meanwhile.
#pragma once

#include <vector>

#include "lib/base/host_timeline.h"
#include "lib/profile/device_activity.h"

namespace trainwright::test {

inline int64_t sample_now_ns = 0;
inline int64_t SampleNow() noexcept {
  return sample_now_ns;
}

/// Steps 3 and 4, from 10,000 ns on, 1,000 ns each with 100 ns between them: of each 600 ns of products
/// within 700 ns of head, 150 ns of optimizer and 150 ns of nothing that has a name.
inline HostTimeline SampleTimeline() {
  HostTimeline timeline(&SampleNow);
  sample_now_ns = 10'000;
  const auto piece = [&](const char* name, ProfilePart part, int64_t time_ns, int64_t operations = 0) {
    timeline.Begin(name, part, operations);
    sample_now_ns += time_ns;
    timeline.End();
  };
  for (int64_t step = 3; step <= 4; ++step) {
    timeline.Begin("step", ProfilePart::kOther, 0, false, step);
    sample_now_ns += 150;
    timeline.Begin("linear_cross_entropy", ProfilePart::kHead);
    sample_now_ns += 40;
    piece("matmul", ProfilePart::kGemm, 600, 3000);
    sample_now_ns += 60;
    timeline.End();
    piece("optimizer", ProfilePart::kOptimizer, 150);
    timeline.End();
    sample_now_ns += 100;
  }
  return timeline;
}

/// Within the steps but for the first and the last, which lie before and behind them.
inline std::vector<DeviceActivity> SampleActivities() {
  return {
      {.name = "ampere_sgemm_128x64_nn", .stream = 7, .start_ns = 9'000, .end_ns = 9'900},
      {.name = "ampere_sgemm_128x64_nn", .stream = 7, .start_ns = 10'200, .end_ns = 10'800},
      {.kind = ActivityKind::kCopyToDevice, .stream = 13, .start_ns = 10'700, .end_ns = 10'900, .bytes = 64},
      {.name = "ampere_sgemm_128x64_nn", .stream = 7, .start_ns = 11'200, .end_ns = 11'400},
      {.name = "fmha_cutlassF", .stream = 7, .start_ns = 12'000, .end_ns = 12'300}};
}

}  // namespace trainwright::test
