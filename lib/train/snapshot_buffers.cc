#include "lib/train/snapshot_buffers.h"

#include <ATen/ops/empty.h>

#include "lib/device/accelerator.h"
#include "lib/device/pinned_memory.h"

namespace trainwright {

void SnapshotBuffers::Allocate(size_t slot, const at::Tensor& live) {
  if (buffers_.size() <= slot) buffers_.resize(slot + 1);
  at::Tensor& buffer = buffers_[slot];
  if (!buffer.defined() || buffer.sizes() != live.sizes() || buffer.scalar_type() != live.scalar_type()) {
    // Pinned memory is what a GPU copies to at its full rate.
    pinned_ = IsAccelerator(live.device());
    buffer = at::empty(live.sizes(), at::TensorOptions().dtype(live.scalar_type()).pinned_memory(pinned_));
    buffer.zero_();  // on the compute threads; a page that the first save touches would cost it a fault
  }
}

int64_t SnapshotBuffers::size_bytes() const {
  int64_t size = 0;
  for (const at::Tensor& buffer : buffers_) {
    const int64_t bytes = buffer.defined() ? static_cast<int64_t>(buffer.nbytes()) : 0;
    size += pinned_ ? PinnedBlockBytes(bytes) : bytes;
  }
  return size;
}

at::Tensor SnapshotBuffers::Copy(size_t slot, const at::Tensor& live) {
  Allocate(slot, live);
  return buffers_[slot].copy_(live);
}

}  // namespace trainwright
