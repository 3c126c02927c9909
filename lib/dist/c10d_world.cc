#include "lib/dist/c10d_world.h"

#include <ATen/ops/empty.h>
#include <dlfcn.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/dist/gloo_group.h"
#include "lib/dist/heartbeat.h"
#include "lib/dist/host_staging.h"
#include "lib/dist/nccl_plugin.h"
#include "lib/dist/rank_store.h"
#include "lib/dist/watched_call.h"

namespace trainwright {
namespace {

at::Tensor TensorOf(const std::vector<int64_t>& values) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<int64_t>());
  return tensor;
}

std::vector<int64_t> ValuesOf(const at::Tensor& tensor) {
  const int64_t* values = tensor.const_data_ptr<int64_t>();
  return {values, values + tensor.numel()};
}

/// The plugin's symbol; null where there is none.
void* FindNccl() {
  return dlsym(RTLD_DEFAULT, kNcclGroupSymbol);
}

}  // namespace

class C10dWorld::Impl {
 public:
  Impl(const RankPlace& place, double timeout_s)
      : place_(place), timeout_s_(timeout_s), heartbeat_(place, timeout_s) {
    try {
      heartbeat_.AwaitAll();
      group_.emplace(place, timeout_s, &heartbeat_);
    } catch (const Error& error) {
      Fail(static_cast<int>(error.code()), error.problem());
      throw;
    }
  }

  const RankPlace& place() const { return place_; }
  GlooGroup* group() { return &*group_; }
  Collectives* collectives() {
    if (gpus_ != nullptr) return gpus_;
    return staging_ ? static_cast<Collectives*>(&*staging_) : group();
  }

  void UseGpus(bool by_nccl) {
    if (!by_nccl) {
      staging_.emplace(group());
      return;
    }
    void* symbol = FindNccl();
    TRAINWRIGHT_CHECK(symbol != nullptr);
    const auto open = [place = place_, timeout_s = timeout_s_] {
      return std::make_shared<RankStore>(place, RankStore::Role::kUse, timeout_s);
    };
    const auto store = CallWatched<std::shared_ptr<RankStore>>(open, ProblemOf, &heartbeat_);
    gpus_ = reinterpret_cast<NcclGroupFunction*>(symbol)(store->ForGroup("nccl").get(),
                                                         static_cast<int32_t>(place_.rank),
                                                         static_cast<int32_t>(place_.ranks), &heartbeat_);
  }

  std::vector<int64_t> Largest(const std::vector<int64_t>& values) {
    const at::Tensor tensor = TensorOf(values);
    group_->BeginMax(tensor)->Wait();
    return ValuesOf(tensor);
  }

  void Close() {
    Largest({0});  // all are here
    delete std::exchange(gpus_, nullptr);
    staging_.reset();
    group_->Close();
    group_.reset();
    heartbeat_.Leave();
  }

  void Look() { heartbeat_.Check(); }
  void Announce(int status, const std::string& problem) noexcept {
    heartbeat_.Announce(OwnFault(status, problem));
  }
  void Fail(int status, const std::string& problem) noexcept { heartbeat_.Fail(OwnFault(status, problem)); }

 private:
  Fault OwnFault(int status, const std::string& problem) const {
    return {place_.rank, RankName(place_.rank),
            "ended with status " + std::to_string(status) + ": " + problem, "see its own messages"};
  }

  const RankPlace place_;
  const double timeout_s_;
  Heartbeat heartbeat_;
  std::optional<GlooGroup> group_;
  std::optional<HostStaging> staging_;
  Collectives* gpus_ = nullptr;  ///< the plugin's; left behind where the world fails
};

C10dWorld::C10dWorld(const RankPlace& place, const C10dWorldOptions& options)
    : impl_(std::make_unique<Impl>(place, options.timeout_s)) {}

C10dWorld::~C10dWorld() = default;

int64_t C10dWorld::rank() const {
  return impl_->place().rank;
}

int64_t C10dWorld::size() const {
  return impl_->place().ranks;
}

void C10dWorld::Reduce(std::vector<int64_t>* counts) {
  const at::Tensor sums = TensorOf(*counts);
  impl_->group()->BeginSum(sums)->Wait();
  *counts = ValuesOf(sums);
}

std::vector<int64_t> C10dWorld::Agree(const std::vector<int64_t>& answers) {
  return impl_->Largest(answers);
}

Collectives* C10dWorld::collectives() {
  return impl_->collectives();
}

void C10dWorld::Look() {
  impl_->Look();
}

void C10dWorld::Announce(int status, const std::string& problem) noexcept {
  impl_->Announce(status, problem);
}

bool C10dWorld::HasNccl() {
  return FindNccl() != nullptr;
}

void C10dWorld::UseGpus(bool by_nccl) {
  impl_->UseGpus(by_nccl);
}

void C10dWorld::Close() {
  impl_->Close();
}

void C10dWorld::Fail(int status, const std::string& problem) noexcept {
  impl_->Fail(status, problem);
}

}  // namespace trainwright
