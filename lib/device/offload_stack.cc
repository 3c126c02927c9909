#include "lib/device/offload_stack.h"

#include <ATen/ops/empty.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <chrono>
#include <vector>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/device/accelerator.h"
#include "lib/io/unnamed_file.h"

namespace trainwright {
namespace {

class FileStack final : public OffloadStack {
 public:
  explicit FileStack(const std::string& folder)
      : file_(folder, "name a folder with room by --offload-dir, lower --batch, or leave out --offload") {}
  void Push(const at::Tensor& tensor) override {
    TRAINWRIGHT_CHECK(tensor.is_contiguous());
    const auto start = std::chrono::steady_clock::now();
    file_.Append({static_cast<const uint8_t*>(tensor.const_data_ptr()), tensor.nbytes()});
    counts_.out_bytes += static_cast<int64_t>(tensor.nbytes());
    counts_.time_s += SecondsSince(start);
  }
  void Pop(at::Tensor& tensor) override {
    TRAINWRIGHT_CHECK(tensor.is_contiguous() && tensor.nbytes() <= file_.size_bytes());
    const auto start = std::chrono::steady_clock::now();
    const uint64_t offset = file_.size_bytes() - tensor.nbytes();
    file_.ReadAt(offset, static_cast<uint8_t*>(tensor.mutable_data_ptr()), tensor.nbytes());
    file_.Shorten(offset);
    counts_.in_bytes += static_cast<int64_t>(tensor.nbytes());
    counts_.time_s += SecondsSince(start);
  }
  void Clear() override { file_.Shorten(0); }

 private:
  UnnamedFile file_;
};

class PinnedStack final : public OffloadStack {
 public:
  void Push(const at::Tensor& tensor) override {
    TRAINWRIGHT_CHECK(tensor.is_contiguous());
    const auto start = std::chrono::steady_clock::now();
    if (buffers_.size() == size_) buffers_.emplace_back();
    at::Tensor& buffer = buffers_[size_++];
    if (!buffer.defined() || buffer.nbytes() < tensor.nbytes()) {
      buffer = at::empty({static_cast<int64_t>(tensor.nbytes())},
                         at::TensorOptions().dtype(at::kByte).pinned_memory(true));
    }
    Part(buffer, tensor).copy_(tensor, /*non_blocking=*/true);
    counts_.out_bytes += static_cast<int64_t>(tensor.nbytes());
    counts_.time_s += SecondsSince(start);
  }
  void Pop(at::Tensor& tensor) override {
    TRAINWRIGHT_CHECK(tensor.is_contiguous() && size_ > 0);
    const auto start = std::chrono::steady_clock::now();
    at::Tensor& buffer = buffers_[--size_];
    TRAINWRIGHT_CHECK(tensor.nbytes() <= buffer.nbytes());
    tensor.copy_(Part(buffer, tensor), /*non_blocking=*/true);
    counts_.in_bytes += static_cast<int64_t>(tensor.nbytes());
    counts_.time_s += SecondsSince(start);
  }
  void Clear() override { size_ = 0; }

 private:
  static at::Tensor Part(const at::Tensor& buffer, const at::Tensor& like) {
    return buffer.narrow(0, 0, static_cast<int64_t>(like.nbytes()))
        .view(like.scalar_type())
        .view(like.sizes());
  }

  // The stream copies out of and into a buffer in the order of the calls, so it may be used again at once.
  std::vector<at::Tensor> buffers_;
  size_t size_ = 0;
};

class MetaStack final : public OffloadStack {
 public:
  void Push(const at::Tensor&) override {}
  void Pop(at::Tensor&) override {}
  void Clear() override {}
};

}  // namespace

std::unique_ptr<OffloadStack> MakeOffloadStack(c10::Device device, const std::string& folder) {
  if (device.is_meta()) return std::make_unique<MetaStack>();
  if (IsAccelerator(device)) return std::make_unique<PinnedStack>();
  return std::make_unique<FileStack>(folder);
}

bool IsInMemory(const std::string& folder) {
  struct statfs status {};
  return statfs(folder.c_str(), &status) == 0 &&
         (status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC);
}

}  // namespace trainwright
