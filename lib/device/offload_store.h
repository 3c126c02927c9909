/// A fixed number of bytes outside the memory of the device that computes, read and written in parts: what is
/// used seldom, as gradients between two layers' turns.
///
/// Of a GPU it is pinned host memory (pinned_memory.h), and copies pass beside what it computes
/// (copy_lanes.h). Of a CPU it is a file without a name, as in offload_stack.h. Contents come back bit for
/// bit. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <string>

#include "lib/device/offload_stack.h"

namespace trainwright {

class OffloadStore {
 public:
  virtual ~OffloadStore() = default;
  /// Tensors that the caller takes turns with.
  virtual int64_t lanes() const { return 1; }
  /// Copies a contiguous tensor to the bytes from `offset_bytes` on; it may be overwritten by what is queued
  /// after Await(lane).
  /// \throws Error{kIo}
  virtual void Write(int64_t offset_bytes, const at::Tensor& tensor, int64_t lane) = 0;
  /// Fills a contiguous tensor with what was written there, for what is queued after Await(lane).
  /// \throws Error{kIo}
  virtual void Read(int64_t offset_bytes, const at::Tensor& tensor, int64_t lane) = 0;
  virtual void Await(int64_t) {}
  /// Of the host's memory that it takes.
  virtual int64_t host_bytes() const { return 0; }
  const OffloadCounts& counts() const { return counts_; }

 protected:
  OffloadCounts counts_;
};

/// \param device of the tensors
/// \param folder for the file of a CPU's
/// \throws Error{kIo} where the folder cannot have one of that size
std::unique_ptr<OffloadStore> MakeOffloadStore(c10::Device device, const std::string& folder,
                                               int64_t size_bytes);
/// One that does nothing, for tensors of torch's meta device that stand for those of `device`.
std::unique_ptr<OffloadStore> OffloadStoreOnPaper(c10::Device device, int64_t size_bytes);

}  // namespace trainwright
