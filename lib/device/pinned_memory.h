/// Host memory that a GPU copies to and from beside what it computes: locked, so that it stays in place.
///
/// Of every block that it is asked for, torch locks the next power of two, which is up to twice as much
/// (ATen/core/CachingHostAllocator.h), so what is large is best kept in pieces of a power of two.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace trainwright {

/// What torch locks for a block of this size.
int64_t PinnedBlockBytes(int64_t size_bytes);
/// What a copy of a tensor of `device` on the host takes: pinned for a GPU.
int64_t HostCopyBytes(int64_t size_bytes, c10::Device device);

/// Pinned bytes in pieces of one size, none of which ever moves. Not thread-safe.
class PinnedPieces {
 public:
  static constexpr int64_t kPieceBytes = 64 << 20;
  /// \param piece_bytes a power of two, of at least 16
  explicit PinnedPieces(int64_t piece_bytes = kPieceBytes) : piece_bytes_(piece_bytes) {}

  /// What is locked for this many bytes.
  static int64_t BytesFor(int64_t size_bytes, int64_t piece_bytes = kPieceBytes);
  /// Takes those pieces for the first `size_bytes` bytes that are not there yet.
  /// \throws std::exception without the memory
  void Reserve(int64_t size_bytes);
  int64_t locked_bytes() const { return static_cast<int64_t>(pieces_.size()) * piece_bytes_; }
  /// Calls `visit` for each piece that has some of the bytes of a contiguous tensor, which begin at
  /// `offset_bytes`, a multiple of its elements' size: with that memory, in the tensor's type, and with those
  /// elements, both of one dimension.
  void ForEachPart(int64_t offset_bytes, const at::Tensor& tensor,
                   const std::function<void(const at::Tensor& pinned, const at::Tensor& part)>& visit) const;

 private:
  int64_t piece_bytes_;
  std::vector<at::Tensor> pieces_;
};

}  // namespace trainwright
