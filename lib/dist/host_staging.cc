#include "lib/dist/host_staging.h"

#include <ATen/ops/empty.h>

#include <utility>

#include "lib/device/accelerator.h"

namespace trainwright {
namespace {

/// Room on the host, pinned where a GPU copies from it and to it.
at::Tensor HostRoomFor(const at::Tensor& values) {
  return at::empty(values.sizes(),
                   values.options().device(at::kCPU).pinned_memory(IsAccelerator(values.device())));
}

/// Waits for what a GPU has yet to do for `values`.
at::Tensor HostCopyOf(const at::Tensor& values) {
  at::Tensor copy = HostRoomFor(values);
  copy.copy_(values);
  return copy;
}

class StagedWork final : public PendingWork {
 public:
  /// \param read, written on the host; the first is kept until the work is done
  /// \param target gets what was written
  StagedWork(std::unique_ptr<PendingWork> work, at::Tensor read, at::Tensor written, at::Tensor target)
      : work_(std::move(work)),
        read_(std::move(read)),
        written_(std::move(written)),
        target_(std::move(target)) {}

  void Wait() override {
    work_->Wait();
    target_.copy_(written_);
  }

 private:
  const std::unique_ptr<PendingWork> work_;
  const at::Tensor read_, written_;
  at::Tensor target_;
};

}  // namespace

std::unique_ptr<PendingWork> HostStaging::BeginSum(at::Tensor values) {
  const at::Tensor copy = HostCopyOf(values);
  return std::make_unique<StagedWork>(host_->BeginSum(copy), at::Tensor(), copy, std::move(values));
}

std::unique_ptr<PendingWork> HostStaging::BeginExchange(const at::Tensor& send, at::Tensor receive,
                                                        const std::vector<int64_t>& send_counts,
                                                        const std::vector<int64_t>& receive_counts) {
  const at::Tensor sent = HostCopyOf(send), received = HostRoomFor(receive);
  return std::make_unique<StagedWork>(host_->BeginExchange(sent, received, send_counts, receive_counts), sent,
                                      received, std::move(receive));
}

std::unique_ptr<PendingWork> HostStaging::BeginGather(const at::Tensor& own, at::Tensor all) {
  const at::Tensor sent = HostCopyOf(own), gathered = HostRoomFor(all);
  return std::make_unique<StagedWork>(host_->BeginGather(sent, gathered), sent, gathered, std::move(all));
}

}  // namespace trainwright
