// The only file that includes c10d's Gloo group, whose header needs gloo's own. Those of the system are older
// than the gloo inside LibTorch: nothing of gloo's is called or laid out here, and
// tests/dist/gloo_layout_test.cc compares what this compiler makes of the group's class with LibTorch's.
#include "lib/dist/gloo_group.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>

#include "lib/base/error.h"
#include "lib/dist/rank_store.h"
#include "lib/dist/watched_call.h"

namespace trainwright {
namespace {

using Group = c10::intrusive_ptr<c10d::Backend>;

constexpr std::chrono::milliseconds kSlice{50};

class GlooWork final : public PendingWork {
 public:
  GlooWork(c10::intrusive_ptr<c10d::Work> work, FaultWatch* watch) : work_(std::move(work)), watch_(watch) {}

  void Wait() override {
    while (!Done()) watch_->Check();
  }

 private:
  /// Waits for a slice of time.
  bool Done() {
    try {
      work_->wait(kSlice);
      return true;
    } catch (const std::exception&) {  // also where the time is over
      if (!work_->isCompleted()) return false;
    }
    if (work_->isSuccess()) return true;
    try {
      std::rethrow_exception(work_->exception());
    } catch (const std::exception& problem) {
      throw watch_->Explain(ProblemOf(problem));
    }
  }

  const c10::intrusive_ptr<c10d::Work> work_;
  FaultWatch* const watch_;
};

class NoWork final : public PendingWork {
 public:
  void Wait() override {}
};

using Devices = std::vector<std::shared_ptr<::gloo::transport::Device>>;

/// \param names as c10d's users give them in GLOO_SOCKET_IFNAME: one or more, between commas
Devices DevicesOfInterfaces(const std::string& names) {
  Devices devices;
  try {
    for (std::string rest = names; !rest.empty();) {
      const size_t end = std::min(rest.find(','), rest.size());
      if (end > 0) devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(rest.substr(0, end)));
      rest.erase(0, end + 1);
    }
  } catch (const std::exception& problem) {
    throw Error(ErrorCode::kUsage, "GLOO_SOCKET_IFNAME", ProblemOf(problem), names,
                "name an interface of this machine that the others reach");
  }
  return devices;
}

/// The loopback where all ranks are on one machine; else what the machine's name stands for, as in c10d.
Devices DevicesFor(const RankPlace& place) {
  const char* interfaces = std::getenv("GLOO_SOCKET_IFNAME");
  if (interfaces != nullptr && *interfaces != '\0') return DevicesOfInterfaces(interfaces);
  const bool store_is_here =
      place.store_host == "localhost" || place.store_host == "::1" || place.store_host.starts_with("127.");
  if (store_is_here || place.local_ranks == place.ranks) {
    return {c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")};
  }
  return {c10d::ProcessGroupGloo::createDefaultDevice()};
}

Group Connect(const RankPlace& place, double timeout_s, const Devices& devices) {
  auto options = c10d::ProcessGroupGloo::Options::create(kNearlyEndless);
  options->devices = devices;
  const RankStore store(place, RankStore::Role::kUse, timeout_s);
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store.ForGroup("gloo"), static_cast<int>(place.rank),
                                                     static_cast<int>(place.ranks), std::move(options));
}

Group ConnectWatched(const RankPlace& place, double timeout_s, FaultWatch* watch) {
  const auto connect = [place, timeout_s, devices = DevicesFor(place)] {
    return Connect(place, timeout_s, devices);
  };
  return CallWatched<Group>(connect, ProblemOf, watch);
}

}  // namespace

GlooGroup::GlooGroup(const RankPlace& place, double timeout_s, FaultWatch* watch)
    : group_(ConnectWatched(place, timeout_s, watch)), watch_(watch) {}

GlooGroup::~GlooGroup() {
  if (!closed_) group_.release();
}

std::unique_ptr<PendingWork> GlooGroup::BeginSum(at::Tensor values) {
  TRAINWRIGHT_CHECK(values.is_contiguous());
  if (values.numel() == 0) return std::make_unique<NoWork>();
  std::vector<at::Tensor> tensors{std::move(values)};
  return Pending(group_->allreduce(tensors));
}

std::unique_ptr<PendingWork> GlooGroup::BeginMax(at::Tensor values) {
  TRAINWRIGHT_CHECK(values.is_contiguous());
  if (values.numel() == 0) return std::make_unique<NoWork>();
  std::vector<at::Tensor> tensors{std::move(values)};
  c10d::AllreduceOptions options;
  options.reduceOp = c10d::ReduceOp::MAX;
  return Pending(group_->allreduce(tensors, options));
}

std::unique_ptr<PendingWork> GlooGroup::BeginExchange(const at::Tensor& send, at::Tensor receive,
                                                      const std::vector<int64_t>& send_counts,
                                                      const std::vector<int64_t>& receive_counts) {
  TRAINWRIGHT_CHECK(send.is_contiguous() && receive.is_contiguous());
  at::Tensor from = send;
  std::vector<int64_t> from_counts = send_counts, to_counts = receive_counts;
  return Pending(group_->alltoall_base(receive, from, to_counts, from_counts));
}

std::unique_ptr<PendingWork> GlooGroup::BeginGather(const at::Tensor& own, at::Tensor all) {
  TRAINWRIGHT_CHECK(own.is_contiguous() && all.is_contiguous());
  if (own.numel() == 0) return std::make_unique<NoWork>();
  at::Tensor from = own;
  return Pending(group_->_allgather_base(all, from));
}

std::unique_ptr<PendingWork> GlooGroup::Pending(c10::intrusive_ptr<c10d::Work> work) {
  return std::make_unique<GlooWork>(std::move(work), watch_);
}

}  // namespace trainwright
