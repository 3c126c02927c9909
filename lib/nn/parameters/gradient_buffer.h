/// The fp32 gradients of a model's trained parameters, in memory all at once or a segment at a time.
///
/// Parameters of one layer are a segment, and the backward pass works on one layer after the other.
/// Offloaded, a window as large as the largest segment serves all: whoever asks for a segment's gradients
/// brings them in and offloads those of the segment before. On a GPU two windows take turns, so that the
/// copies of one pass beside the work on the other. The numbers are the same bit for bit. Sharded, a segment
/// has memory from when it is first asked for until it is released, and is zero before and after: whoever
/// releases it has taken its gradients elsewhere.
///
/// On another device than a CPU, where a pass over memory costs what a GEMM over it does, gradients of
/// matrices that are all in memory are zeroed only where that is needed: a GEMM that puts all of one at
/// once asks for TakeUnwritten, and whoever asks for them otherwise finds zeros. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lib/device/offload_store.h"

namespace trainwright {

class GradientBuffer {
 public:
  /// Elements [begin, end) of the flat layout.
  struct Segment {
    int64_t begin = 0, end = 0;
    bool written = false;  ///< offloaded: whether the store has it; else it is zero
  };
  /// Elements [begin, begin + size), which some GEMM puts at once.
  struct Matrix {
    int64_t begin = 0, size = 0;
    bool unwritten = false;  ///< zero, whatever its memory holds
    int64_t end() const { return begin + size; }
  };
  /// \param segments one after the other from 0 on; may be none
  /// \param options where the gradients lie
  /// \param matrices in their order
  void SetLayout(std::vector<Segment> segments, const at::TensorOptions& options,
                 std::vector<Matrix> matrices = {});
  /// Puts the segments that are not worked on into a store of size_bytes(). Before the first use.
  void Offload(std::unique_ptr<OffloadStore> store);
  const OffloadStore* store() const { return store_.get(); }
  /// Gives segments memory only while they are worked on. Before the first use; not of offloaded ones.
  void GiveAway();
  bool given_away() const { return given_away_; }
  /// Whether all gradients are in memory at once.
  bool is_whole() const { return store_ == nullptr && !given_away_; }
  const std::vector<Segment>& segments() const { return segments_; }

  /// The gradients of elements that lie in one segment; offloaded, good until another segment is asked for.
  /// \throws Error{kIo} offloaded
  at::Tensor View(int64_t offset, int64_t size);
  /// All of them, where they are whole.
  at::Tensor& Whole();
  /// Whether these elements are whole matrices that were not asked for since they were zeroed, so that
  /// whoever asks has to write them. They then count as written.
  bool TakeUnwritten(int64_t offset, int64_t size);
  /// Of each matrix, in their order, whether it is unwritten: what the kernels of a pass depend on.
  std::vector<bool> Unwritten() const;
  /// For who repeats the kernels of a pass that left it so.
  void set_unwritten(const std::vector<bool>& unwritten);
  /// Whether memory has been taken.
  bool allocated() const { return buffer_.defined() || taken_bytes_ > 0; }
  void Zero();
  /// Copies gradients that lie side by side, in one segment or several. Not of offloaded ones.
  /// \param out fp32, contiguous
  void CopyTo(int64_t begin, at::Tensor out);
  /// Sharded: takes a segment's memory back; it is zero again.
  void Release(size_t segment);
  /// Calls `visit` with one part of the gradients after the other, and the place of its first element.
  /// Offloaded, what it changes is lost. Not of those that are sharded.
  /// \throws Error{kIo} offloaded
  void ForEachPart(const std::function<void(int64_t begin, at::Tensor& gradients)>& visit);

  /// Of all gradients.
  int64_t size_bytes() const;
  /// Of the memory that they take, or will take; sharded, what they have taken so far, but at least that
  /// of the largest segment.
  int64_t memory_bytes() const;

 private:
  int64_t num_elements() const { return segments_.empty() ? 0 : segments_.back().end; }
  /// The segment that an element lies in.
  size_t SegmentOf(int64_t offset) const;
  void Allocate();
  /// Zeroes what of the memory that elements have is not written.
  void ZeroUnwritten(int64_t begin, int64_t end);
  /// Calls for each unwritten matrix that has some of the elements.
  template <typename Function>
  void ForUnwritten(int64_t begin, int64_t end, const Function& function);
  /// Sharded: the segment's memory.
  at::Tensor& Take(size_t segment);
  /// Offloaded: the segment's part of a window.
  at::Tensor WindowOf(const Segment& segment, int64_t window);
  /// Makes a segment the one in the present window, which becomes the next one, and begins to read the
  /// segment that comes after it in the direction of the last two into another window.
  void BringIn(size_t index);
  void ReadAhead(size_t index, bool descending);
  /// Stores the segment in the present window if there is one.
  void PutAway();

  std::vector<Segment> segments_;
  int64_t largest_segment_ = 0;   ///< its elements
  std::vector<Matrix> matrices_;  ///< none where all is zeroed at once
  std::vector<at::Tensor> rest_;  ///< views of whole gradients: what lies between matrices
  at::TensorOptions options_;
  std::unique_ptr<OffloadStore> store_;
  at::Tensor buffer_;
  int64_t window_ = 0;  ///< offloaded: the present one of as many as the store has lanes
  std::optional<size_t> in_window_, in_next_window_, last_in_window_;
  bool given_away_ = false;
  std::vector<at::Tensor> taken_, free_;  ///< sharded: memory of each segment, or undefined; and released
  int64_t taken_bytes_ = 0;               ///< of both
};

}  // namespace trainwright
