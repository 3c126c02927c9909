/// Saves in the background: the training thread copies what a checkpoint holds, a thread of its own writes
/// it.
///
/// One save is under way at a time; whoever wants the next one waits for it. What is written does not depend
/// on the thread that writes. Not thread-safe: one caller.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <vector>

#include "lib/train/checkpointer.h"

namespace trainwright {

/// Host copies of tensors that training changes in place, in buffers that are used again.
class SnapshotBuffers {
 public:
  /// Makes the buffer of a slot, counted from 0, fit a tensor, with its pages in place, so that a copy into
  /// it is a copy alone.
  /// \throws std::exception without the memory
  void Allocate(size_t slot, const at::Tensor& live);
  /// \returns the slot's buffer, valid until its next copy
  at::Tensor Copy(size_t slot, const at::Tensor& live);
  /// As Allocate and Copy, of all of an optimizer's states in slots from `first` on.
  void Allocate(size_t first, const std::vector<OptimizerState>& live);
  std::vector<OptimizerState> Copy(size_t first, const std::vector<OptimizerState>& live);
  int64_t size_bytes() const;
  /// Gives the memory back.
  void Release() { buffers_.clear(); }

 private:
  std::vector<at::Tensor> buffers_;
};

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
