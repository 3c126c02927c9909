/// The one progress bar of the suite, on standard error.
///
/// `auto` draws only when standard error is a terminal, TERM is not "dumb" and -q is off; redrawn at most 6
/// times a second and cleared before every log line. Without a bar nothing is printed, except that a long run
/// may ask for a plain line at most every 60 s. NO_COLOR is respected. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace trainwright {

enum class ProgressMode { kAuto, kAlways, kNever };

class Progress {
 public:
  /// \param total units of work, 0 when unknown (a counter is drawn instead of a bar)
  /// \param unit "tokens", "bytes"
  /// \param plain_lines whether to log a line every 60 s where no bar is drawn
  Progress(ProgressMode mode, std::string label, uint64_t total, std::string unit, bool plain_lines = false);
  ~Progress();  ///< clears the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// \param done units so far; the rate counts from the first call
  /// \param note short text after the rate, "loss 3.21"
  void Update(uint64_t done, const std::string& note = "");
  /// Whether a bar is drawn.
  bool active() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trainwright
