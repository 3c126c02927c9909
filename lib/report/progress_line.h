/// The text of a progress bar, apart from the clock and the terminal.
#pragma once

#include <cstdint>
#include <string>

namespace trainwright {

struct ProgressState {
  std::string label;
  uint64_t done = 0;
  uint64_t total = 0;     ///< 0: unknown
  std::string unit;       ///< "bytes" is shown as KiB, MiB, ...
  double rate_per_s = 0;  ///< below 1 it is shown as time per unit: "4.20 s/step"
  std::string note;
};

/// "pack  42 % [#####......]  4.20 M of 10.0 M tokens  1.25 M/s  ETA 4.64 s  loss 3.21", cut to `width`
/// columns.
/// \param bar_width columns of the bar at most; 0 leaves it out
/// \param color whether the bar may be coloured
std::string RenderProgressLine(const ProgressState& state, int width, int bar_width, bool color);

}  // namespace trainwright
