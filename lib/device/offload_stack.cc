#include "lib/device/offload_stack.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/device/accelerator.h"
#include "lib/device/copy_lanes.h"
#include "lib/device/pinned_memory.h"
#include "lib/io/unnamed_file.h"

namespace trainwright {
namespace {

class FileStack final : public OffloadStack {
 public:
  explicit FileStack(const std::string& folder)
      : file_(folder, "name a folder with room by --offload-dir, lower --batch, or leave out --offload") {}
  void Push(const std::vector<at::Tensor>& tensors, int64_t) override {
    const auto start = std::chrono::steady_clock::now();
    for (const at::Tensor& tensor : tensors) {
      TRAINWRIGHT_CHECK(tensor.is_contiguous());
      file_.Append({static_cast<const uint8_t*>(tensor.const_data_ptr()), tensor.nbytes()});
      counts_.out_bytes += static_cast<int64_t>(tensor.nbytes());
    }
    counts_.time_s += SecondsSince(start);
  }
  void Pop(const std::vector<at::Tensor>& tensors, int64_t) override {
    const auto start = std::chrono::steady_clock::now();
    for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) {
      TRAINWRIGHT_CHECK(tensor->is_contiguous() && tensor->nbytes() <= file_.size_bytes());
      const uint64_t offset = file_.size_bytes() - tensor->nbytes();
      file_.ReadAt(offset, static_cast<uint8_t*>(tensor->mutable_data_ptr()), tensor->nbytes());
      file_.Shorten(offset);
      counts_.in_bytes += static_cast<int64_t>(tensor->nbytes());
    }
    counts_.time_s += SecondsSince(start);
  }
  void Clear() override { file_.Shorten(0); }

 private:
  UnnamedFile file_;
};

/// Where tensors lie in memory, one after the other.
class StackedPlaces {
 public:
  int64_t Push(int64_t size_bytes) {
    const int64_t place = end_;
    end_ += Aligned(size_bytes);
    most_ = std::max(most_, end_);
    return place;
  }
  /// \returns the place of the last one, which has this size
  int64_t Pop(int64_t size_bytes) {
    end_ -= Aligned(size_bytes);
    TRAINWRIGHT_CHECK(end_ >= 0);
    return end_;
  }
  void Clear() { end_ = 0; }
  /// That were taken at a time.
  int64_t most_bytes() const { return most_; }

 private:
  static int64_t Aligned(int64_t size_bytes) {
    constexpr int64_t kAlignment = 512;  // as torch aligns the tensors of a GPU
    return (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  int64_t end_ = 0, most_ = 0;
};

class PinnedStack final : public OffloadStack {
 public:
  explicit PinnedStack(c10::Device device) : copies_(device, kCopyLanes) {}
  int64_t lanes() const override { return copies_.lanes(); }
  void Push(const std::vector<at::Tensor>& tensors, int64_t lane) override {
    const auto start = std::chrono::steady_clock::now();
    copies_.Queue(lane, tensors, [&] {
      for (const at::Tensor& tensor : tensors) {
        const int64_t place = places_.Push(static_cast<int64_t>(tensor.nbytes()));
        pieces_.Reserve(places_.most_bytes());
        pieces_.ForEachPart(place, tensor, [](const at::Tensor& pinned, const at::Tensor& part) {
          pinned.copy_(part, /*non_blocking=*/true);
        });
        counts_.out_bytes += static_cast<int64_t>(tensor.nbytes());
      }
    });
    counts_.time_s += SecondsSince(start);
  }
  void Pop(const std::vector<at::Tensor>& tensors, int64_t lane) override {
    const auto start = std::chrono::steady_clock::now();
    copies_.Queue(lane, tensors, [&] {
      for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) {
        const int64_t place = places_.Pop(static_cast<int64_t>(tensor->nbytes()));
        pieces_.ForEachPart(place, *tensor, [](const at::Tensor& pinned, const at::Tensor& part) {
          part.copy_(pinned, /*non_blocking=*/true);
        });
        counts_.in_bytes += static_cast<int64_t>(tensor->nbytes());
      }
    });
    counts_.time_s += SecondsSince(start);
  }
  void Await(int64_t lane) override { copies_.Await(lane); }
  void Clear() override {
    copies_.AwaitAll();
    places_.Clear();
  }
  int64_t host_bytes() const override { return pieces_.locked_bytes(); }

 private:
  CopyLanes copies_;
  // Their stream copies out of and into a place in the order of the calls, so it may be used again at once.
  PinnedPieces pieces_;
  StackedPlaces places_;
};

class PaperStack final : public OffloadStack {
 public:
  /// \param pinned whether it stands for one in pinned memory
  PaperStack(int64_t lanes, bool pinned) : lanes_(lanes), pinned_(pinned) {}
  int64_t lanes() const override { return lanes_; }
  void Push(const std::vector<at::Tensor>& tensors, int64_t) override {
    for (const at::Tensor& tensor : tensors) places_.Push(static_cast<int64_t>(tensor.nbytes()));
  }
  void Pop(const std::vector<at::Tensor>& tensors, int64_t) override {
    for (const at::Tensor& tensor : tensors) places_.Pop(static_cast<int64_t>(tensor.nbytes()));
  }
  void Clear() override { places_.Clear(); }
  int64_t host_bytes() const override { return pinned_ ? PinnedPieces::BytesFor(places_.most_bytes()) : 0; }

 private:
  int64_t lanes_;
  bool pinned_;
  StackedPlaces places_;
};

}  // namespace

std::unique_ptr<OffloadStack> MakeOffloadStack(c10::Device device, const std::string& folder) {
  if (IsAccelerator(device)) return std::make_unique<PinnedStack>(device);
  TRAINWRIGHT_CHECK(device.is_cpu());
  return std::make_unique<FileStack>(folder);
}

std::unique_ptr<OffloadStack> OffloadStackOnPaper(c10::Device device) {
  const bool pinned = IsAccelerator(device);
  return std::make_unique<PaperStack>(pinned ? kCopyLanes : 1, pinned);
}

bool IsInMemory(const std::string& folder) {
  struct statfs status {};
  return statfs(folder.c_str(), &status) == 0 &&
         (status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC);
}

}  // namespace trainwright
