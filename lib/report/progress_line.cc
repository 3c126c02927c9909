#include "lib/report/progress_line.h"

#include <algorithm>

#include "lib/base/units.h"

namespace trainwright {
namespace {

constexpr int kLeastBarWidth = 6;

std::string Quantity(uint64_t amount, const std::string& unit) {
  return unit == "bytes" ? FormatBytes(amount) : FormatCount(static_cast<double>(amount));
}

/// "12.5 k/s"; "4.20 s/step" where a unit takes seconds.
std::string Rate(const ProgressState& state) {
  if (state.unit == "bytes") return FormatBytes(static_cast<uint64_t>(state.rate_per_s)) + "/s";
  if (state.rate_per_s >= 1) return FormatCount(state.rate_per_s) + "/s";
  const std::string one =
      state.unit.ends_with('s') ? state.unit.substr(0, state.unit.size() - 1) : state.unit;
  return FormatDuration(1 / state.rate_per_s) + "/" + one;
}

}  // namespace

std::string RenderProgressLine(const ProgressState& state, int width, int bar_width, bool color) {
  const bool bytes = state.unit == "bytes";
  const double fraction =
      state.total == 0 ? 0
                       : std::min(1.0, static_cast<double>(state.done) / static_cast<double>(state.total));
  std::string head = state.label, tail = "  " + Quantity(state.done, state.unit);
  if (state.total != 0) {
    head += "  " + std::to_string(static_cast<int>(fraction * 100)) + " %";
    tail += " of " + Quantity(state.total, state.unit);
  }
  if (!bytes) tail += " " + state.unit;
  if (state.rate_per_s > 0) {
    tail += "  " + Rate(state);
    if (state.total > state.done) {
      tail += "  ETA " + FormatDuration(static_cast<double>(state.total - state.done) / state.rate_per_s);
    }
  }
  if (!state.note.empty()) tail += "  " + state.note;

  const int room = width - static_cast<int>(head.size() + tail.size()) - 3;  // " [" and "]"
  const int columns = std::min(room, bar_width);
  if (state.total == 0 || columns < kLeastBarWidth) {
    return (head + tail).substr(0, static_cast<size_t>(std::max(width, 0)));
  }
  const auto filled = static_cast<size_t>(fraction * columns);
  const std::string full(filled, '#'), empty(static_cast<size_t>(columns) - filled, '.');
  return head + " [" + (color ? "\x1b[36m" + full + "\x1b[0m" : full) + empty + "]" + tail;
}

}  // namespace trainwright
