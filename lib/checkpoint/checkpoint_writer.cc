#include "lib/checkpoint/checkpoint_writer.h"

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
constexpr int kWriterNiceness = 10;

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
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kWriterNiceness);
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
