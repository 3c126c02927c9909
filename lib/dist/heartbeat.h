/// Signals the ranks of a world that this one is alive, and learns what became of the others.
///
/// A thread beats in the store, reads the beats of others and the one fault that ends a world. The training
/// thread, whose object this is, never talks to the store: whatever the store does, its waits end.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "lib/dist/fault_watch.h"
#include "lib/dist/heartbeat_state.h"

namespace trainwright {

class Heartbeat final : public FaultWatch {
 public:
  /// Begins to look for the other ranks.
  Heartbeat(const RankPlace& place, double timeout_s);
  /// Fails a world that was neither left nor failed. Abandons the thread where the store holds it; what
  /// it touches then is its own.
  ~Heartbeat() override;
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  /// \throws Error{kIo} naming ranks that do not come within the time-out; Error{kInterrupted, kTerminated}
  ///     once a signal asked to stop
  void AwaitAll();
  void Check() override;
  Error Explain(const std::string& problem) override;
  /// Has the world end with a fault of this rank, unless it has one. Returns at once: Fail comes later.
  void Announce(const Fault& fault) noexcept;
  /// Ends the world with a fault of this rank, unless it has one; returns once the other ranks know which, or
  /// after half the time-out, or a second where there is no store yet.
  void Fail(const Fault& fault) noexcept;
  /// Leaves a world in which all ranks are done.
  void Leave() noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  /// The world's fault, as far as it is known by now.
  std::optional<Fault> Verdict();
  /// Whether the store owes an answer for too long.
  bool StoreIsSilent() const;
  /// Whether that has been so for a while: after a stop of this very process its thread needs a moment to
  /// take the answer.
  bool StoreIsSurelySilent();
  void AwaitEnd(std::unique_lock<std::mutex>* lock, double most_s);

  const std::shared_ptr<HeartbeatState> state_;
  std::optional<Clock::time_point> silent_since_;  ///< as Check saw it
  Clock::time_point looked_;                       ///< when it did last
  bool over_ = false;                              ///< left or failed
  std::thread thread_;
};

}  // namespace trainwright
