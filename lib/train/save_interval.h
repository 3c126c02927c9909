/// How often a run is saved, as --save-every takes it: in optimizer steps or in time.
#pragma once

#include <cstdint>
#include <string>

namespace trainwright {

/// At most one is above 0; when both are 0 the run is saved at its end only. Saving changes neither the
/// schedule nor the order of the data.
struct SaveInterval {
  int64_t steps = 0;
  double time_s = 0;  ///< save after the first step that begins this long after the last save
};

/// "200" (steps), "0" (at the end only), "90s", "10m", "1.5h". \throws Error{kUsage} naming `flag`
SaveInterval ParseSaveInterval(const std::string& text, const std::string& flag);

}  // namespace trainwright
