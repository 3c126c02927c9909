/// The thread of a heartbeat: the only one that talks to the store once the world is open.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/dist/beat_watch.h"
#include "lib/dist/heartbeat_state.h"
#include "lib/dist/rank_store.h"

namespace trainwright {

class HeartbeatThread {
 public:
  explicit HeartbeatThread(std::shared_ptr<HeartbeatState> state);
  /// Opens the store, says that this rank is there, and beats until the training thread leaves, wants a fault
  /// published or one is known.
  void Run() noexcept;

 private:
  enum class Wish { kNone, kPublish, kLeave };

  bool Open();
  /// Says that this rank is there. A run that it is not part of learns nothing of it.
  /// \returns whether it may be one of the run
  bool Enter();
  /// For this rank alone.
  /// \param which run it is
  void KnowAnotherRun(const std::string& which);
  /// \returns whether all ranks came
  bool Come();
  /// \returns the ranks that did not come yet
  std::vector<int64_t> Missing();
  /// \returns the ranks of which another process came, too
  std::vector<int64_t> CameTwice();
  void Beat();
  /// Makes it the world's fault, unless that has one.
  void Publish(const Fault& fault);
  /// What the training thread wishes.
  void PublishWish();
  void Know(Fault fault);
  bool KnowsFault();
  /// Says that this rank knows the fault; where it serves the store, waits for the others to do so.
  void Linger();
  void Leave();
  /// After the connection to the store broke.
  void Diagnose(const std::string& problem);
  /// Says that this rank lost its connection to the store, and waits for others that did: then it was the end
  /// that all share which was cut, rank 0's. Throws where the store goes meanwhile.
  bool OthersLostTheStore();
  /// Waits for a wish of the training thread.
  Wish AwaitWish(double most_s);
  /// Waits until all other ranks but one have set their key of a kind, beating on.
  void AwaitOthers(const std::string& kind, int64_t but, double most_s);

  const std::shared_ptr<HeartbeatState> state_;
  const RankPlace& place_;
  const double timeout_s_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::unique_ptr<RankStore> store_;
  uint64_t beats_ = 0;
};

}  // namespace trainwright
