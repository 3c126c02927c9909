/// Tensors that leave the memory of the device that computes and come back in reverse order: what the layers
/// keep for the backward pass.
///
/// From a GPU they go to pinned host memory (pinned_memory.h), by copies beside what it computes
/// (copy_lanes.h). From a CPU there is nowhere to go but a disk: they are written to a file without a name.
/// The system keeps what was written in its page cache while nobody else wants that memory, so the process
/// is smaller at once and the disk is waited for only where memory is short. Contents come back bit for bit.
/// Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace trainwright {

struct OffloadCounts {
  int64_t out_bytes = 0, in_bytes = 0;
  double time_s = 0;  ///< the caller waited; of a GPU only what the calls took
  OffloadCounts& operator+=(const OffloadCounts& other) {
    out_bytes += other.out_bytes, in_bytes += other.in_bytes, time_s += other.time_s;
    return *this;
  }
};

class OffloadStack {
 public:
  virtual ~OffloadStack() = default;
  /// Sets of tensors that the caller takes turns with.
  virtual int64_t lanes() const { return 1; }
  /// Copies contiguous tensors, which may be overwritten by what is queued after Await(lane).
  /// \throws Error{kIo} where a folder has no room
  virtual void Push(const std::vector<at::Tensor>& tensors, int64_t lane) = 0;
  /// Fills contiguous tensors with the last ones that are left, which had their sizes, the last tensor first;
  /// for what is queued after Await(lane).
  /// \throws Error{kIo}
  virtual void Pop(const std::vector<at::Tensor>& tensors, int64_t lane) = 0;
  virtual void Await(int64_t) {}
  /// Forgets what is left, and awaits all lanes.
  virtual void Clear() = 0;
  /// Of the host's memory that it takes, or on paper would have taken so far.
  virtual int64_t host_bytes() const { return 0; }
  const OffloadCounts& counts() const { return counts_; }

 protected:
  OffloadCounts counts_;
};

/// \param device of the tensors
/// \param folder for the file of a CPU's
/// \throws Error{kIo} where the folder cannot have one
std::unique_ptr<OffloadStack> MakeOffloadStack(c10::Device device, const std::string& folder);
/// One that moves nothing, for tensors of torch's meta device that stand for those of `device`.
std::unique_ptr<OffloadStack> OffloadStackOnPaper(c10::Device device);
/// Whether files in a folder lie in memory themselves, so that nothing is gained.
bool IsInMemory(const std::string& folder);

}  // namespace trainwright
