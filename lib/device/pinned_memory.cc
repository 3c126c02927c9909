#include "lib/device/pinned_memory.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <bit>

#include "lib/base/error.h"
#include "lib/device/accelerator.h"

namespace trainwright {

int64_t PinnedBlockBytes(int64_t size_bytes) {
  if (size_bytes <= 0) return 0;
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(size_bytes)));
}

int64_t HostCopyBytes(int64_t size_bytes, c10::Device device) {
  return IsAccelerator(device) ? PinnedBlockBytes(size_bytes) : size_bytes;
}

int64_t PinnedPieces::BytesFor(int64_t size_bytes, int64_t piece_bytes) {
  return (size_bytes + piece_bytes - 1) / piece_bytes * piece_bytes;
}

void PinnedPieces::Reserve(int64_t size_bytes) {
  while (locked_bytes() < size_bytes) {
    pieces_.push_back(at::empty({piece_bytes_}, at::TensorOptions().dtype(at::kByte).pinned_memory(true)));
  }
}

void PinnedPieces::ForEachPart(
    int64_t offset_bytes, const at::Tensor& tensor,
    const std::function<void(const at::Tensor& pinned, const at::Tensor& part)>& visit) const {
  const int64_t element_bytes = tensor.element_size(), elements = tensor.numel();
  TRAINWRIGHT_CHECK(tensor.is_contiguous() && offset_bytes % element_bytes == 0);
  TRAINWRIGHT_CHECK(offset_bytes >= 0 && offset_bytes + elements * element_bytes <= locked_bytes());
  const at::Tensor flat = tensor.view({elements});
  for (int64_t begin = 0; begin < elements;) {
    const int64_t place = offset_bytes + begin * element_bytes, in_piece = place % piece_bytes_;
    const int64_t count = std::min(elements - begin, (piece_bytes_ - in_piece) / element_bytes);
    const at::Tensor& piece = pieces_[static_cast<size_t>(place / piece_bytes_)];
    visit(piece.narrow(0, in_piece, count * element_bytes).view(tensor.scalar_type()),
          flat.narrow(0, begin, count));
    begin += count;
  }
}

}  // namespace trainwright
