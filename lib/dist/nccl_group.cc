// Collectives over c10d's NCCL group, between GPUs: libtrainwright_nccl.so. Unverified:
// compiled and loaded, but no machine with several GPUs has run it yet.
#include <c10/cuda/CUDAFunctions.h>

#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#include <utility>
#include <vector>

#include "lib/dist/nccl_plugin.h"
#include "lib/dist/watched_call.h"

namespace trainwright {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroupNCCL>;

constexpr std::chrono::milliseconds kSlice{20};
constexpr std::chrono::microseconds kLookAgain{20};

std::string ProblemOf(const std::exception& problem) {
  const std::string text = problem.what();
  return text.substr(0, text.find('\n'));
}

class NcclWork final : public PendingWork {
 public:
  NcclWork(c10::intrusive_ptr<c10d::Work> work, FaultWatch* watch) : work_(std::move(work)), watch_(watch) {}

  /// Also holds the host: what goes on would wait for the GPU without looking at the watch.
  void Wait() override {
    auto looked = std::chrono::steady_clock::now();
    try {
      while (!work_->isCompleted()) {
        std::this_thread::sleep_for(kLookAgain);
        if (std::chrono::steady_clock::now() - looked < kSlice) continue;
        looked = std::chrono::steady_clock::now();
        watch_->Check();
      }
      work_->wait();  // the current stream goes on behind the group's
    } catch (const c10::Error& problem) {
      throw watch_->Explain(ProblemOf(problem));
    }
  }

 private:
  const c10::intrusive_ptr<c10d::Work> work_;
  FaultWatch* const watch_;
};

class NcclGroup final : public Collectives {
 public:
  NcclGroup(Group group, FaultWatch* watch) : group_(std::move(group)), watch_(watch) {}

  std::unique_ptr<PendingWork> BeginSum(at::Tensor values) override {
    std::vector<at::Tensor> tensors{std::move(values)};
    return Pending(group_->allreduce(tensors));
  }

  std::unique_ptr<PendingWork> BeginExchange(const at::Tensor& send, at::Tensor receive,
                                             const std::vector<int64_t>& send_counts,
                                             const std::vector<int64_t>& receive_counts) override {
    at::Tensor from = send;
    std::vector<int64_t> from_counts = send_counts, to_counts = receive_counts;
    return Pending(group_->alltoall_base(receive, from, to_counts, from_counts));
  }

  std::unique_ptr<PendingWork> BeginGather(const at::Tensor& own, at::Tensor all) override {
    at::Tensor from = own;
    return Pending(group_->_allgather_base(all, from));
  }

 private:
  std::unique_ptr<PendingWork> Pending(c10::intrusive_ptr<c10d::Work> work) {
    return std::make_unique<NcclWork>(std::move(work), watch_);
  }

  const Group group_;
  FaultWatch* const watch_;
};

Group Connect(const c10::intrusive_ptr<c10d::Store>& store, int rank, int ranks, c10::DeviceIndex device) {
  c10::cuda::set_device(device);
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = kNearlyEndless;
  auto group = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, ranks, std::move(options));
  group->eagerConnectSingleDevice(c10::Device(c10::kCUDA, device));
  return group;
}

}  // namespace
}  // namespace trainwright

extern "C" __attribute__((visibility("default"))) trainwright::Collectives* trainwright_nccl_group(
    c10d::Store* store, int32_t rank, int32_t ranks, trainwright::FaultWatch* watch) {
  const auto kept = c10::intrusive_ptr<c10d::Store>::reclaim_copy(store);
  const auto connect = [kept, rank, ranks, device = c10::cuda::current_device()] {
    return trainwright::Connect(kept, rank, ranks, device);
  };
  return new trainwright::NcclGroup(
      trainwright::CallWatched<trainwright::Group>(connect, trainwright::ProblemOf, watch), watch);
}
