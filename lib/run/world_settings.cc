#include "lib/run/world_settings.h"

#include <algorithm>
#include <cmath>

#include "lib/base/number_list.h"
#include "lib/base/units.h"

namespace trainwright {
namespace {

constexpr int64_t kMostRanks = int64_t{1} << 20;
constexpr char kUsualLatency[] = "20us";

std::vector<int64_t> ParseWorlds(const std::string& text) {
  const std::optional<std::vector<int64_t>> worlds = ParseNumberList<int64_t>(text);
  const auto may_be = [](int64_t ranks) { return 1 <= ranks && ranks <= kMostRanks; };
  if (!worlds || !std::all_of(worlds->begin(), worlds->end(), may_be)) {
    throw Error(ErrorCode::kUsage, "--world", "'" + text + "' is no list of numbers of ranks", "",
                "write numbers of at least 1 with commas between them: 8,64,512");
  }
  return *worlds;
}

/// \throws Error{kUsage} on stages that there are not
void CheckZero(const TrainSettings& settings) {
  const int64_t zero = settings.zero.value_or(0);
  if (zero == 3) throw NoZeroThree("--zero 3");
  if (zero < 0 || zero > 2) throw Error(ErrorCode::kUsage, "--zero", "must be 0, 1 or 2");
}

void RefuseWithoutWorld(const TrainSettings& settings) {
  const auto refuse = [](bool given, const char* flag) {
    if (given) throw Error(ErrorCode::kUsage, flag, "has a meaning only with --world");
  };
  refuse(!settings.bandwidth.empty(), "--bandwidth");
  refuse(!settings.latency.empty(), "--latency");
  refuse(settings.device_tflops.has_value(), "--device-tflops");
  refuse(!settings.device_memory.empty(), "--device-memory");
}

}  // namespace

Error NoZeroThree(const std::string& object, const std::string& place) {
  return Error(
      ErrorCode::kUsage, object,
      "does not exist here: each layer's weights would lie on one rank and travel to all others twice "
      "in every micro-batch",
      place, "--zero 2 divides all but the copy of the weights that the passes read");
}

std::optional<WorldSettings> ParseWorldSettings(const TrainSettings& settings) {
  CheckZero(settings);
  if (settings.world.empty()) {
    RefuseWithoutWorld(settings);
    return std::nullopt;
  }
  if (!settings.dry_run) {
    throw Error(ErrorCode::kUsage, "--world", "estimates for ranks that are not there: only with --dry-run",
                "", "--nproc starts ranks on this machine");
  }
  if (settings.bandwidth.empty()) {
    throw Error(ErrorCode::kUsage, "--world", "needs the bandwidth between ranks", "",
                "say it with --bandwidth: 50GB, 400Gbit");
  }
  WorldSettings world = {
      .worlds = ParseWorlds(settings.world),
      .link = {.bytes_per_s = ParseBandwidth(settings.bandwidth, "--bandwidth"),
               .latency_s =
                   ParseLatency(settings.latency.empty() ? kUsualLatency : settings.latency, "--latency")},
      .bucket_bytes = BucketBytes(settings),
      .device_tflops = settings.device_tflops};
  if (world.device_tflops && !(*world.device_tflops > 0 && std::isfinite(*world.device_tflops))) {
    throw Error(ErrorCode::kUsage, "--device-tflops", "must be a number above 0");
  }
  if (!settings.device_memory.empty()) {
    world.memory_bytes = static_cast<int64_t>(ParseBytes(settings.device_memory, "--device-memory"));
    if (world.memory_bytes == 0) throw Error(ErrorCode::kUsage, "--device-memory", "must be above 0");
  }
  return world;
}

}  // namespace trainwright
