#include "lib/train/checkpoint_writer.h"

#include <ATen/ops/empty.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <utility>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"

namespace trainwright {
namespace {

using Clock = std::chrono::steady_clock;

/// Of the background thread: training goes first where both want a core.
constexpr int kBackgroundNiceness = 10;

double ThreadCpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

FinishedSave Run(const CheckpointWriter::Write& write, SaveTimes times, Clock::time_point begin) {
  const Clock::time_point start = Clock::now();
  const double cpu_before_s = ThreadCpuSeconds();
  FinishedSave finished{.saved = write(), .times = times};
  finished.times.writer_cpu_s = ThreadCpuSeconds() - cpu_before_s;
  finished.times.write_time_s = SecondsSince(start);
  finished.times.save_time_s = SecondsSince(begin);
  if (!times.background) finished.times.stall_s = finished.times.save_time_s;
  return finished;
}

}  // namespace

void SnapshotBuffers::Allocate(size_t slot, const at::Tensor& live) {
  if (buffers_.size() <= slot) buffers_.resize(slot + 1);
  at::Tensor& buffer = buffers_[slot];
  if (!buffer.defined() || buffer.sizes() != live.sizes() || buffer.scalar_type() != live.scalar_type()) {
    // Pinned memory is what a GPU copies to at its full rate.
    buffer =
        at::empty(live.sizes(), at::TensorOptions().dtype(live.scalar_type()).pinned_memory(live.is_cuda()));
    buffer.zero_();  // on the compute threads; a page that the first save touches would cost it a fault
  }
}

int64_t SnapshotBuffers::size_bytes() const {
  int64_t size = 0;
  for (const at::Tensor& buffer : buffers_)
    size += buffer.defined() ? static_cast<int64_t>(buffer.nbytes()) : 0;
  return size;
}

at::Tensor SnapshotBuffers::Copy(size_t slot, const at::Tensor& live) {
  Allocate(slot, live);
  return buffers_[slot].copy_(live);
}

void SnapshotBuffers::Allocate(size_t first, const std::vector<OptimizerState>& live) {
  for (const OptimizerState& state : live) Allocate(first++, state.value);
}

std::vector<OptimizerState> SnapshotBuffers::Copy(size_t first, const std::vector<OptimizerState>& live) {
  std::vector<OptimizerState> copies;
  for (const OptimizerState& state : live) copies.push_back({state.name, Copy(first++, state.value)});
  return copies;
}

void CheckpointWriter::Begin(bool background, Clock::time_point waited,
                             const std::function<Write()>& snapshot) {
  TRAINWRIGHT_CHECK(!busy());
  SaveTimes times{.background = background, .wait_s = SecondsSince(waited)};
  const Clock::time_point start = Clock::now();
  Write write = snapshot();
  if (!background) {
    std::promise<FinishedSave> done;
    done.set_value(Run(write, times, waited));
    pending_ = done.get_future();
    return;
  }
  times.snapshot_s = SecondsSince(start);
  times.stall_s = SecondsSince(waited);
  pending_ = std::async(std::launch::async, [write = std::move(write), times, waited] {
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kBackgroundNiceness);
    return Run(write, times, waited);
  });
}

std::optional<FinishedSave> CheckpointWriter::Poll() {
  if (!busy() || pending_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return std::nullopt;
  return pending_.get();
}

std::optional<FinishedSave> CheckpointWriter::Wait() {
  if (!busy()) return std::nullopt;
  return pending_.get();
}

}  // namespace trainwright
