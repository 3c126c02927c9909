/// When a thread began and ended which piece of work: what --profile records of the host.
///
/// Pieces nest. The time of a piece less that of the pieces inside it is its self time, so the self times of
/// all pieces add up to the time of the outermost ones, to the nanosecond. Times are of the steady clock.
/// Sums are kept of all pieces, events of the first `most_events`: memory is bounded. Not thread-safe: of the
/// one thread that it is attached to (profile_scope.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/base/profile_part.h"

namespace trainwright {

/// One piece of work; 0 <= end_ns - start_ns.
struct HostEvent {
  const char* name = "";  ///< static
  ProfilePart part = ProfilePart::kOther;
  int32_t depth = 0;  ///< pieces around it
  int64_t start_ns = 0, end_ns = 0;
  int64_t operations = 0;  ///< floating-point operations that it says it does; 0: not counted
  int64_t number = -1;     ///< of a step; -1: none
};

/// All pieces of one name.
struct HostTotals {
  std::string_view name;
  ProfilePart part = ProfilePart::kOther;
  int64_t calls = 0;
  int64_t self_ns = 0;
  int64_t total_ns = 0;  ///< with what is inside; pieces inside one of the same name count in both
  int64_t operations = 0;
};

/// Of the clock of every timeline.
int64_t SteadyNanoseconds() noexcept;

class HostTimeline {
 public:
  static constexpr size_t kMostEvents = 2'000'000;

  /// \param now a clock in nanoseconds that never goes back
  explicit HostTimeline(int64_t (*now)() noexcept = &SteadyNanoseconds, size_t most_events = kMostEvents);

  /// \param name static
  /// \param opaque whether pieces inside it are not told apart from it
  void Begin(const char* name, ProfilePart part, int64_t operations = 0, bool opaque = false,
             int64_t number = -1);
  /// Adds to the operations of the innermost piece: of work that is known when it is done.
  void Count(int64_t operations);
  /// Ends the innermost piece.
  void End();

  /// In the order in which they began; those under way have no end yet.
  const std::vector<HostEvent>& events() const { return events_; }
  /// Pieces beyond those that were kept as events.
  int64_t events_left_out() const { return events_left_out_; }
  /// Of the pieces that have ended, by name and part.
  const std::vector<HostTotals>& totals() const { return totals_; }
  /// Self time of the pieces of each part that have ended.
  const std::array<int64_t, kProfileParts>& self_ns() const { return self_ns_; }
  /// Of the outermost pieces that have ended.
  int64_t outermost_ns() const { return outermost_ns_; }
  /// Where the first of these began and the last ended; 0 before.
  int64_t start_ns() const { return start_ns_; }
  int64_t end_ns() const { return end_ns_; }

 private:
  static constexpr size_t kNoEvent = ~size_t{0};
  struct Open {
    HostEvent event;
    size_t place = kNoEvent;  ///< in events_
    int64_t inner_ns = 0;     ///< of the pieces right inside it
    bool opaque = false;
  };
  HostTotals& TotalsOf(const HostEvent& event);

  int64_t (*now_)() noexcept;
  size_t most_events_;
  std::vector<HostEvent> events_;
  std::vector<HostTotals> totals_;
  std::vector<Open> open_;
  int64_t muted_ = 0;  ///< pieces under way inside an opaque one
  std::array<int64_t, kProfileParts> self_ns_ = {};
  int64_t outermost_ns_ = 0, start_ns_ = 0, end_ns_ = 0;
  int64_t outermost_pieces_ = 0, events_left_out_ = 0;
};

}  // namespace trainwright
