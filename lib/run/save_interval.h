/// How often a run is saved, as --save-every takes it: in optimizer steps, in time, or each epoch.
#pragma once

#include <cstdint>
#include <string>

namespace trainwright {

/// At most one is set; when none is the run is saved at its end only. Saving changes neither the
/// schedule nor the order of the data.
struct SaveInterval {
  int64_t steps = 0;
  double time_s = 0;    ///< save after the first step that begins this long after the last save
  bool epochs = false;  ///< save after the step that ends a pass over the data
};

/// "200" (steps), "0" (at the end only), "90s", "10m", "1.5h", "epoch".
/// \throws Error{kUsage} naming `flag`
SaveInterval ParseSaveInterval(const std::string& text, const std::string& flag);

}  // namespace trainwright
