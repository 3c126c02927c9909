/// Saves in the background: the training thread copies what a checkpoint holds, a thread of its own writes
/// it.
///
/// One save is under way at a time; whoever wants the next one waits for it. What is written does not depend
/// on the thread that writes. Not thread-safe: one caller.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>

#include "lib/checkpoint/checkpoint.h"

namespace trainwright {

/// What a save cost.
struct SaveTimes {
  bool background = false;
  double wait_s = 0;        ///< the training thread waited for the save before
  double snapshot_s = 0;    ///< it copied; 0 where nothing is copied
  double stall_s = 0;       ///< all it lost: of a save that is not in the background the whole of it
  double write_time_s = 0;  ///< from the first file to the end of the rotation
  double writer_cpu_s = 0;  ///< processor time of the thread that wrote
  double save_time_s = 0;   ///< from the beginning, waiting included, to the end of the write
};

struct FinishedSave {
  SavedCheckpoint saved;
  SaveTimes times;
};

class CheckpointWriter {
 public:
  using Write = std::function<SavedCheckpoint()>;

  /// Waits for the save that is under way; its error is lost.
  ~CheckpointWriter() = default;

  /// Begins a save.
  /// \param background whether a thread of its own writes
  /// \param snapshot called at once, on the calling thread; what it returns is called once, by the one that
  ///     writes, and must not read what training changes when that is in the background
  /// \param waited since when the caller has been waiting for the save before
  /// \throws without `background` what the write throws \pre the save before was taken by Poll or Wait
  void Begin(bool background, std::chrono::steady_clock::time_point waited,
             const std::function<Write()>& snapshot);
  bool busy() const { return pending_.valid(); }
  /// The save that ended since the last call, if one did.
  /// \throws its error, once
  std::optional<FinishedSave> Poll();
  /// The same once none is under way.
  std::optional<FinishedSave> Wait();

 private:
  std::future<FinishedSave> pending_;
};

}  // namespace trainwright
