#include "lib/run/save_interval.h"

#include <charconv>
#include <cmath>
#include <map>
#include <string_view>

#include "lib/base/error.h"

namespace trainwright {

SaveInterval ParseSaveInterval(const std::string& text, const std::string& flag) {
  static const std::map<std::string_view, double> kUnitsS = {{"s", 1}, {"m", 60}, {"h", 3600}};
  const char* const end = text.data() + text.size();
  SaveInterval interval;
  if (text == "epoch") return {.epochs = true};
  const auto steps = std::from_chars(text.data(), end, interval.steps);
  if (steps.ec == std::errc() && steps.ptr == end && interval.steps >= 0) return interval;

  interval = {};
  const auto time = std::from_chars(text.data(), end, interval.time_s, std::chars_format::fixed);
  const auto unit = kUnitsS.find(std::string_view(time.ptr, static_cast<size_t>(end - time.ptr)));
  if (time.ec == std::errc() && unit != kUnitsS.end() && std::isfinite(interval.time_s) &&
      interval.time_s > 0) {
    interval.time_s *= unit->second;
    return interval;
  }
  throw Error(ErrorCode::kUsage, flag, "'" + text + "' is neither a number of steps nor a time", "",
              "write steps, a time with its unit, or epoch: 200, 90s, 10m, 1.5h; 0 saves at the end only");
}

}  // namespace trainwright
