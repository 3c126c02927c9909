/// A fixed number of bytes outside the memory of the device that computes, read and written in parts: what is
/// used seldom, as gradients between two layers' turns.
///
/// Of a GPU it is pinned host memory, and copies go on the current stream, which the host does not wait for.
/// Of a CPU it is a file without a name, as in offload_stack.h. Contents come back bit for bit. Not
/// thread-safe.
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
  /// Copies a contiguous tensor to the bytes from `offset_bytes` on; it may then be overwritten.
  /// \throws Error{kIo}
  virtual void Write(int64_t offset_bytes, const at::Tensor& tensor) = 0;
  /// Fills a contiguous tensor with what was written there.
  /// \throws Error{kIo}
  virtual void Read(int64_t offset_bytes, at::Tensor& tensor) = 0;
  const OffloadCounts& counts() const { return counts_; }

 protected:
  OffloadCounts counts_;
};

/// \param device of the tensors; on torch's meta device it does nothing
/// \param folder for the file of a CPU's
/// \throws Error{kIo} where the folder cannot have one of that size
std::unique_ptr<OffloadStore> MakeOffloadStore(c10::Device device, const std::string& folder,
                                               int64_t size_bytes);

}  // namespace trainwright
