/// Copies between a device and pinned host memory beside what the device computes, on a stream of their own.
///
/// Whoever uses them takes turns with a few sets of tensors, its lanes: while the copies of one lane pass,
/// the device works on the tensors of another. Events order the two streams; the host waits for neither. Not
/// thread-safe.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace trainwright {

/// Enough for the copies of one set and the work on another.
inline constexpr int64_t kCopyLanes = 2;

class CopyLanes {
 public:
  /// \param device an accelerator
  CopyLanes(c10::Device device, int64_t lanes);
  CopyLanes(const CopyLanes&) = delete;
  CopyLanes& operator=(const CopyLanes&) = delete;

  int64_t lanes() const { return static_cast<int64_t>(done_.size()); }
  /// Queues the lane's copies after all that is queued on the present stream so far.
  /// \param copies queues copies that do not block
  /// \param tensors of the device that they read or write: their memory stays until they are done
  void Queue(int64_t lane, const std::vector<at::Tensor>& tensors, const std::function<void()>& copies);
  /// What is queued on the present stream from now on comes after the lane's copies.
  void Await(int64_t lane);
  void AwaitAll();

 private:
  c10::Stream PresentStream() const;

  c10::Device device_;
  c10::Stream stream_;
  c10::Event ready_;
  struct Lane {
    c10::Event done;
    bool copies = false;  ///< since it was awaited
  };
  std::vector<Lane> done_;
};

/// The stream of a device for copies that nothing else orders: one for the process. Thread-safe.
c10::Stream UploadStream(c10::Device device);

}  // namespace trainwright
