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

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/units.h"
#include "lib/dist/loopback_ranks.h"
#include "lib/dist/rank_store.h"
#include "lib/dist/watched_call.h"

namespace trainwright {
namespace {

using Group = c10::intrusive_ptr<c10d::Backend>;

constexpr std::chrono::milliseconds kSlice{50};
constexpr double kLeastToConnect_s = 5;  // that busy machines take

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

/// Those of GLOO_SOCKET_IFNAME; none where it is not set.
Devices DevicesAskedFor() {
  const char* interfaces = std::getenv("GLOO_SOCKET_IFNAME");
  return interfaces != nullptr && *interfaces != '\0' ? DevicesOfInterfaces(interfaces) : Devices();
}

/// The loopback where all ranks are on one machine; else what the machine's name stands for, as in c10d.
Devices UsualDevices(bool on_loopback) {
  return {on_loopback ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                      : c10d::ProcessGroupGloo::createDefaultDevice()};
}

Group Connect(const RankPlace& place, double timeout_s, const Devices& asked) {
  RankStore store(place, RankStore::Role::kUse, timeout_s);
  const bool on_loopback = AllOnLoopback(place, &store);  // which others may need to know
  auto options = c10d::ProcessGroupGloo::Options::create(kNearlyEndless);
  options->devices = asked.empty() ? UsualDevices(on_loopback) : asked;
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store.ForGroup("gloo"), static_cast<int>(place.rank),
                                                     static_cast<int>(place.ranks), std::move(options));
}

/// Ends the wait for a connection that does not come about though all ranks live: an address of one may be no
/// way to it for another.
class ConnectionWatch final : public FaultWatch {
 public:
  ConnectionWatch(double most_s, FaultWatch* watch) : most_s_(most_s), watch_(watch) {}
  void Check() override {
    watch_->Check();
    if (SecondsSince(start_) > most_s_)
      throw Explain("no connection within " + FormatFixed(most_s_, 0) + " s");
  }
  Error Explain(const std::string& problem) override { return watch_->Explain(problem); }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const double most_s_;
  FaultWatch* const watch_;
};

Group ConnectWatched(const RankPlace& place, double timeout_s, FaultWatch* watch) {
  const auto connect = [place, timeout_s, devices = DevicesAskedFor()] {
    return Connect(place, timeout_s, devices);
  };
  ConnectionWatch connection(std::max(timeout_s, kLeastToConnect_s), watch);
  return CallWatched<Group>(connect, ProblemOf, &connection);
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
