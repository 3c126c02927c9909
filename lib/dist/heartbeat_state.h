/// What the training thread and the thread of its heartbeat share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "lib/dist/fault.h"
#include "lib/launch/rank_place.h"

namespace trainwright {

/// Kept by both: the thread may be left behind in a call that does not return.
struct HeartbeatState {
  HeartbeatState(RankPlace rank_place, double world_timeout_s)
      : place(std::move(rank_place)), timeout_s(world_timeout_s) {}
  bool serves() const { return place.rank == 0 && !place.store_is_served; }

  const RankPlace place;
  const double timeout_s;

  /// By the steady clock, since when the store owes an answer; 0: it owes none.
  std::atomic<int64_t> asked_ns{0};

  std::mutex mutex;
  std::condition_variable changed;  ///< any of the following
  bool store_is_open = false;
  bool all_came = false;
  std::optional<Fault> fault;       ///< the world's
  std::optional<Fault> to_publish;  ///< the training thread's wish
  bool leaving = false;             ///< another one
  bool ended = false;               ///< the thread has done its last
};

}  // namespace trainwright
