/// The ranks of a run as processes that c10d connects: its store, where they find each other and say that
/// they live, and Gloo, which carries what they exchange; between GPUs NCCL.
///
/// A rank that is killed, stopped, cut off or ends with an error is noticed within the time-out by all
/// others: whatever they wait for then throws an Error that names the rank and what became of it. How long a
/// living rank takes is no fault. Not thread-safe: the training thread's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/dist/collectives.h"
#include "lib/dist/world.h"
#include "lib/launch/rank_place.h"

namespace trainwright {

struct C10dWorldOptions {
  double timeout_s = 60;  ///< within which a rank at fault ends all others; at least 1
};

class C10dWorld final : public World {
 public:
  /// Waits for all ranks to come.
  /// \throws Error{kIo} where they do not within the time-out; Error{kInterrupted, kTerminated} once a signal
  ///     asked to stop
  C10dWorld(const RankPlace& place, const C10dWorldOptions& options);
  /// Abandons the world where it was neither closed nor failed.
  ~C10dWorld() override;
  int64_t rank() const override;
  int64_t size() const override;
  void Reduce(std::vector<int64_t>* counts) override;
  std::vector<int64_t> Agree(const std::vector<int64_t>& answers) override;
  Collectives* collectives() override;
  void Look() override;
  void Announce(int status, const std::string& problem) noexcept override;
  /// Whether the CUDA plugin that this process has loaded, if it has, was built with NCCL.
  static bool HasNccl();
  /// From here on collectives() moves tensors of this process's current GPU; until then those of the host, by
  /// Gloo. All ranks call it with the same answer.
  /// \param by_nccl which all ranks have, with a GPU each (WhyNotNccl): unverified, no machine with several
  ///     GPUs has run it yet; else by Gloo, through copies on the host
  /// \throws as Reduce
  void UseGpus(bool by_nccl);
  /// Leaves a world whose work is done: waits for all others to do so.
  /// \throws as Reduce
  void Close();
  /// Leaves it with an error of this rank's own: reports it to the others. Returns within the time-out; never
  /// throws.
  /// \param status that this rank exits with
  /// \param problem on one line
  void Fail(int status, const std::string& problem) noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trainwright
