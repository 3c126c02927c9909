#include "lib/run/loader_plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lib/base/error.h"
#include "lib/base/units.h"

namespace trainwright {
namespace {

constexpr int64_t kMostWorkers = 256, kMostPrefetch = 1024;
/// Enough to feed a GPU from decoded shards; more would only hold more windows in memory.
constexpr int kGpuWorkers = 4;
constexpr int64_t kDataCacheBytes = 64 << 20;
/// Decoded whole in less than a millisecond.
constexpr uint64_t kTinyDataTokens = uint64_t{1} << 16;

int64_t ParseWorkers(const std::string& text) {
  int64_t workers = -1;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), workers);
  if (status != std::errc() || end != text.data() + text.size() || workers < 0 || workers > kMostWorkers) {
    throw Error(
        ErrorCode::kUsage, "--workers",
        "'" + text + "' is neither auto nor a number of threads from 0 to " + std::to_string(kMostWorkers));
  }
  return workers;
}

}  // namespace

PlannedLoader PlanLoader(const TrainSettings& settings, bool gpu, int cores, uint64_t data_tokens) {
  PlannedLoader planned;
  if (settings.workers != "auto") {
    planned.options.workers = static_cast<int>(ParseWorkers(settings.workers));
  } else if (data_tokens <= kTinyDataTokens) {
    planned.options.workers = 0;
    planned.reasons.push_back({"workers",
                               FormatCount(static_cast<double>(data_tokens)) +
                                   " tokens of data are decoded sooner than a thread starts",
                               "workers 0"});
  } else if (gpu) {
    planned.options.workers = std::clamp(cores / 2, 1, kGpuWorkers);
    planned.reasons.push_back(
        {"workers", "half of " + std::to_string(cores) + " cores, at most 4, are free while the GPU computes",
         "workers " + std::to_string(planned.options.workers)});
  } else {
    planned.options.workers = 1;
    planned.reasons.push_back(
        {"workers", "one thread decodes far faster than a CPU trains, and training needs the cores",
         "workers 1"});
  }
  const int64_t prefetch = settings.prefetch.value_or(gpu ? 2 : 1);
  if (prefetch < 1 || prefetch > kMostPrefetch) {
    throw Error(ErrorCode::kUsage, "--prefetch",
                std::to_string(prefetch) + " windows: must be from 1 to " + std::to_string(kMostPrefetch));
  }
  planned.options.prefetch = static_cast<int>(prefetch);
  if (settings.skip_bad_chunks < 0) throw Error(ErrorCode::kUsage, "--skip-bad-chunks", "must be at least 0");
  planned.options.skip_bad_chunks = static_cast<uint64_t>(settings.skip_bad_chunks);
  if (!(settings.data_timeout_s >= 0) || !std::isfinite(settings.data_timeout_s)) {
    throw Error(ErrorCode::kUsage, "--data-timeout", "must be a number of seconds, or 0 for none");
  }
  planned.options.stall_limit_s = settings.data_timeout_s;
  planned.pin = gpu && settings.pin != "off";
  if (settings.pin == "auto") {
    planned.reasons.push_back(
        {"pin",
         gpu ? "copies through pinned memory are not waited for" : "a CPU reads micro-batches where they are",
         ""});
  } else if (settings.pin == "on" && !gpu) {
    planned.reasons.push_back(
        {"pin", "a CPU reads micro-batches where they are: pinned memory has no effect", "pin off"});
  }
  return planned;
}

void PlanDataCache(const TrainSettings& settings, uint32_t chunks_per_frame, uint64_t block_chunks,
                   PlannedLoader* planned) {
  if (settings.data_cache != "auto") {
    planned->options.cache_bytes = static_cast<int64_t>(
        std::min<uint64_t>(ParseBytes(settings.data_cache, "--data-cache"), uint64_t{1} << 50));
    return;
  }
  const bool shared = chunks_per_frame > block_chunks;
  planned->options.cache_bytes = shared ? kDataCacheBytes : 0;
  planned->reasons.push_back({"data-cache",
                              shared ? "a frame of the shards holds " + std::to_string(chunks_per_frame) +
                                           " chunks, which are wanted at different times; where the data is "
                                           "much larger, --shuffle-block " +
                                           std::to_string(chunks_per_frame) + " reads each frame once"
                                     : "what is decoded is used at once",
                              ""});
}

}  // namespace trainwright
