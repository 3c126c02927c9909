#include "lib/device/offload_stack.h"

#include <ATen/ops/empty.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <chrono>
#include <vector>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/device/accelerator.h"
#include "lib/device/copy_lanes.h"
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

class PinnedStack final : public OffloadStack {
 public:
  explicit PinnedStack(c10::Device device) : copies_(device, kCopyLanes) {}
  int64_t lanes() const override { return copies_.lanes(); }
  void Push(const std::vector<at::Tensor>& tensors, int64_t lane) override {
    const auto start = std::chrono::steady_clock::now();
    copies_.Queue(lane, tensors, [&] {
      for (const at::Tensor& tensor : tensors) {
        TRAINWRIGHT_CHECK(tensor.is_contiguous());
        NextPart(tensor).copy_(tensor, /*non_blocking=*/true);
        counts_.out_bytes += static_cast<int64_t>(tensor.nbytes());
      }
    });
    counts_.time_s += SecondsSince(start);
  }
  void Pop(const std::vector<at::Tensor>& tensors, int64_t lane) override {
    const auto start = std::chrono::steady_clock::now();
    copies_.Queue(lane, tensors, [&] {
      for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) {
        TRAINWRIGHT_CHECK(tensor->is_contiguous() && size_ > 0);
        const at::Tensor& buffer = buffers_[--size_];
        TRAINWRIGHT_CHECK(tensor->nbytes() <= buffer.nbytes());
        tensor->copy_(Part(buffer, *tensor), /*non_blocking=*/true);
        counts_.in_bytes += static_cast<int64_t>(tensor->nbytes());
      }
    });
    counts_.time_s += SecondsSince(start);
  }
  void Await(int64_t lane) override { copies_.Await(lane); }
  void Clear() override {
    copies_.AwaitAll();
    size_ = 0;
  }

 private:
  at::Tensor NextPart(const at::Tensor& tensor) {
    if (buffers_.size() == size_) buffers_.emplace_back();
    at::Tensor& buffer = buffers_[size_++];
    if (!buffer.defined() || buffer.nbytes() < tensor.nbytes()) {
      buffer = at::empty({static_cast<int64_t>(tensor.nbytes())},
                         at::TensorOptions().dtype(at::kByte).pinned_memory(true));
    }
    return Part(buffer, tensor);
  }
  static at::Tensor Part(const at::Tensor& buffer, const at::Tensor& like) {
    return buffer.narrow(0, 0, static_cast<int64_t>(like.nbytes()))
        .view(like.scalar_type())
        .view(like.sizes());
  }

  CopyLanes copies_;
  // Their stream copies out of and into a buffer in the order of the calls, so it may be used again at once.
  std::vector<at::Tensor> buffers_;
  size_t size_ = 0;
};

class PaperStack final : public OffloadStack {
 public:
  explicit PaperStack(int64_t lanes) : lanes_(lanes) {}
  int64_t lanes() const override { return lanes_; }
  void Push(const std::vector<at::Tensor>&, int64_t) override {}
  void Pop(const std::vector<at::Tensor>&, int64_t) override {}
  void Clear() override {}

 private:
  int64_t lanes_;
};

}  // namespace

std::unique_ptr<OffloadStack> MakeOffloadStack(c10::Device device, const std::string& folder) {
  if (IsAccelerator(device)) return std::make_unique<PinnedStack>(device);
  TRAINWRIGHT_CHECK(device.is_cpu());
  return std::make_unique<FileStack>(folder);
}

std::unique_ptr<OffloadStack> OffloadStackOnPaper(c10::Device device) {
  return std::make_unique<PaperStack>(IsAccelerator(device) ? kCopyLanes : 1);
}

bool IsInMemory(const std::string& folder) {
  struct statfs status {};
  return statfs(folder.c_str(), &status) == 0 &&
         (status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC);
}

}  // namespace trainwright
