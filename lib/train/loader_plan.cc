#include "lib/train/loader_plan.h"

#include <algorithm>
#include <charconv>

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr int64_t kMostWorkers = 256, kMostPrefetch = 1024;
/// Enough to feed a GPU from decoded shards; more would only hold more windows in memory.
constexpr int kGpuWorkers = 4;

int64_t ParseWorkers(const std::string& text) {
  int64_t workers = -1;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), workers);
  if (status != std::errc() || end != text.data() + text.size() || workers < 0 || workers > kMostWorkers) {
    throw Error(ErrorCode::kUsage, "--workers",
                "'" + text + "' is neither auto nor a number of threads from 0 to " +
                    std::to_string(kMostWorkers));
  }
  return workers;
}

}  // namespace

PlannedLoader PlanLoader(const TrainSettings& settings, at::Device device, int cores) {
  PlannedLoader planned;
  const bool gpu = device.is_cuda();
  if (settings.workers != "auto") {
    planned.options.workers = static_cast<int>(ParseWorkers(settings.workers));
  } else if (gpu) {
    planned.options.workers = std::clamp(cores / 2, 1, kGpuWorkers);
    planned.reasons.push_back({"workers",
                               "half of " + std::to_string(cores) +
                                   " cores, at most 4, are free while the GPU computes",
                               "workers " + std::to_string(planned.options.workers)});
  } else {
    planned.options.workers = 1;
    planned.reasons.push_back({"workers",
                               "one thread decodes far faster than a CPU trains, and training needs the cores",
                               "workers 1"});
  }
  const int64_t prefetch = settings.prefetch.value_or(gpu ? 2 : 1);
  if (prefetch < 1 || prefetch > kMostPrefetch) {
    throw Error(ErrorCode::kUsage, "--prefetch",
                std::to_string(prefetch) + " windows: must be from 1 to " + std::to_string(kMostPrefetch));
  }
  planned.options.prefetch = static_cast<int>(prefetch);
  planned.pin = gpu && settings.pin != "off";
  if (settings.pin == "auto") {
    planned.reasons.push_back({"pin", gpu ? "copies through pinned memory are not waited for"
                                          : "a CPU reads micro-batches where they are",
                               ""});
  } else if (settings.pin == "on" && !gpu) {
    planned.reasons.push_back(
        {"pin", "a CPU reads micro-batches where they are: pinned memory has no effect", "pin off"});
  }
  return planned;
}

}  // namespace trainwright
