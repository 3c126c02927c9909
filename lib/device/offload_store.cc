#include "lib/device/offload_store.h"

#include <chrono>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/device/accelerator.h"
#include "lib/device/copy_lanes.h"
#include "lib/device/pinned_memory.h"
#include "lib/io/unnamed_file.h"

namespace trainwright {
namespace {

class FileStore final : public OffloadStore {
 public:
  FileStore(const std::string& folder, int64_t size_bytes)
      : file_(folder, "name a folder with room by --offload-dir, or leave out --offload") {
    file_.Reserve(static_cast<uint64_t>(size_bytes));
  }
  void Write(int64_t offset_bytes, const at::Tensor& tensor, int64_t) override {
    TRAINWRIGHT_CHECK(tensor.is_contiguous());
    const auto start = std::chrono::steady_clock::now();
    file_.WriteAt(static_cast<uint64_t>(offset_bytes),
                  {static_cast<const uint8_t*>(tensor.const_data_ptr()), tensor.nbytes()});
    counts_.out_bytes += static_cast<int64_t>(tensor.nbytes());
    counts_.time_s += SecondsSince(start);
  }
  void Read(int64_t offset_bytes, const at::Tensor& tensor, int64_t) override {
    TRAINWRIGHT_CHECK(tensor.is_contiguous());
    const auto start = std::chrono::steady_clock::now();
    file_.ReadAt(static_cast<uint64_t>(offset_bytes), static_cast<uint8_t*>(tensor.mutable_data_ptr()),
                 tensor.nbytes());
    counts_.in_bytes += static_cast<int64_t>(tensor.nbytes());
    counts_.time_s += SecondsSince(start);
  }

 private:
  UnnamedFile file_;
};

class PinnedStore final : public OffloadStore {
 public:
  PinnedStore(c10::Device device, int64_t size_bytes) : copies_(device, kCopyLanes) {
    pieces_.Reserve(size_bytes);
  }
  int64_t lanes() const override { return copies_.lanes(); }
  void Write(int64_t offset_bytes, const at::Tensor& tensor, int64_t lane) override {
    const auto start = std::chrono::steady_clock::now();
    copies_.Queue(lane, {tensor}, [&] {
      pieces_.ForEachPart(offset_bytes, tensor, [](const at::Tensor& pinned, const at::Tensor& part) {
        pinned.copy_(part, /*non_blocking=*/true);
      });
    });
    counts_.out_bytes += static_cast<int64_t>(tensor.nbytes());
    counts_.time_s += SecondsSince(start);
  }
  void Read(int64_t offset_bytes, const at::Tensor& tensor, int64_t lane) override {
    const auto start = std::chrono::steady_clock::now();
    copies_.Queue(lane, {tensor}, [&] {
      pieces_.ForEachPart(offset_bytes, tensor, [](const at::Tensor& pinned, const at::Tensor& part) {
        part.copy_(pinned, /*non_blocking=*/true);
      });
    });
    counts_.in_bytes += static_cast<int64_t>(tensor.nbytes());
    counts_.time_s += SecondsSince(start);
  }
  void Await(int64_t lane) override { copies_.Await(lane); }
  int64_t host_bytes() const override { return pieces_.locked_bytes(); }

 private:
  CopyLanes copies_;
  PinnedPieces pieces_;
};

class PaperStore final : public OffloadStore {
 public:
  PaperStore(int64_t lanes, int64_t host_bytes) : lanes_(lanes), host_bytes_(host_bytes) {}
  int64_t lanes() const override { return lanes_; }
  void Write(int64_t, const at::Tensor&, int64_t) override {}
  void Read(int64_t, const at::Tensor&, int64_t) override {}
  int64_t host_bytes() const override { return host_bytes_; }

 private:
  int64_t lanes_, host_bytes_;
};

}  // namespace

std::unique_ptr<OffloadStore> MakeOffloadStore(c10::Device device, const std::string& folder,
                                               int64_t size_bytes) {
  if (IsAccelerator(device)) return std::make_unique<PinnedStore>(device, size_bytes);
  TRAINWRIGHT_CHECK(device.is_cpu());
  return std::make_unique<FileStore>(folder, size_bytes);
}

std::unique_ptr<OffloadStore> OffloadStoreOnPaper(c10::Device device, int64_t size_bytes) {
  if (!IsAccelerator(device)) return std::make_unique<PaperStore>(/*lanes=*/1, /*host_bytes=*/0);
  return std::make_unique<PaperStore>(kCopyLanes, PinnedPieces::BytesFor(size_bytes));
}

}  // namespace trainwright
