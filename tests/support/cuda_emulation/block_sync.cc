#include "tests/support/cuda_emulation/block_sync.h"

#include <algorithm>
#include <string_view>

namespace trainwright::cuda_emulation {
namespace {

bool Same(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         std::string_view(a.file_name()) == std::string_view(b.file_name());
}

std::string NameOf(const std::source_location& where) {
  return std::string(where.file_name()) + ":" + std::to_string(where.line());
}

}  // namespace

BlockSync::BlockSync(int threads, ThreadSwitch* thread_switch)
    : threads_(threads), switch_(thread_switch), places_(static_cast<size_t>(threads)) {
  for (int first = 0; first < threads; first += 32) {
    warps_.push_back(std::make_unique<Warp>());
    warps_.back()->lanes = std::min(32, threads - first);
  }
}

void BlockSync::Begin() {
  std::fill(places_.begin(), places_.end(), Place());
  for (const auto& warp : warps_) warp->arrived = warp->done = 0;
  arrived_ = 0;
  running_.store(threads_, std::memory_order_relaxed);
}

void BlockSync::Barrier(int thread, const std::source_location& where) {
  std::string problem;
  {
    const std::lock_guard lock(mutex_);
    if (failed()) throw AbandonedThread();
    place(thread) = {State::kAtBarrier, 0, where};
    if (++arrived_ == threads_) {
      problem = BarrierProblem();
      place(thread).state = State::kRunning;
      if (problem.empty()) {
        arrived_ = 0;
        Release(0, threads_, State::kAtBarrier, thread);
        return;
      }
    }
  }
  if (!problem.empty()) {
    Fail(problem);
    throw AbandonedThread();
  }
  Suspend(thread);
}

uint64_t BlockSync::Shuffle(int thread, unsigned mask, uint64_t value, int source,
                            const std::source_location& where) {
  const int lane = thread % 32, first = thread - lane;
  Warp& warp = warp_of(thread);
  std::string problem;
  int turn = 0;
  bool over = false;
  {
    const std::lock_guard lock(warp.mutex);
    if (failed()) throw AbandonedThread();
    if ((mask >> lane & 1u) == 0) {
      problem = "lane " + std::to_string(lane) + " shuffles with a mask without it, at " + NameOf(where);
    } else if (source >= warp.lanes) {
      problem = "a shuffle wants lane " + std::to_string(source) + ", which the block does not have, at " +
                NameOf(where);
    } else {
      turn = warp.turn;
      warp.values[turn][static_cast<size_t>(lane)] = value;
      place(thread) = {State::kAtShuffle, mask, where};
      ++warp.arrived;
      over = EndShuffle(first, thread, &problem);
      if (!problem.empty()) place(thread).state = State::kRunning;
    }
  }
  if (!problem.empty()) {
    Fail(problem);
    throw AbandonedThread();
  }
  if (!over) Suspend(thread);
  return source < 0 ? 0 : warp.values[turn][static_cast<size_t>(source)];
}

void BlockSync::Done(int thread) {
  Warp& warp = warp_of(thread);
  std::string problem;
  {
    const std::lock_guard lock(warp.mutex);
    place(thread).state = State::kDone;
    ++warp.done;
    if (!failed()) EndShuffle(thread / 32 * 32, thread, &problem);
  }
  if (!problem.empty()) Fail(problem);
  if (running_.fetch_sub(1, std::memory_order_relaxed) != 1) return;
  problem = StuckProblem();
  if (!problem.empty()) Fail(problem);
}

void BlockSync::Fail(const std::string& problem) {
  const std::lock_guard lock(mutex_);
  if (failed()) return;
  problem_ = problem;
  for (const auto& warp : warps_) warp->mutex.lock();
  failed_.store(true, std::memory_order_relaxed);
  for (int i = 0; i < threads_; ++i) {
    Release(i, 1, State::kAtBarrier, -1);
    Release(i, 1, State::kAtShuffle, -1);
  }
  for (const auto& warp : warps_) warp->mutex.unlock();
}

void BlockSync::Suspend(int thread) {
  if (running_.fetch_sub(1, std::memory_order_relaxed) == 1) Fail(StuckProblem());
  switch_->Wait(thread);
  if (failed()) throw AbandonedThread();
}

void BlockSync::Release(int first, int count, State state, int but) {
  for (int i = first; i < first + count; ++i) {
    if (i == but || place(i).state != state) continue;
    place(i).state = State::kRunning;
    running_.fetch_add(1, std::memory_order_relaxed);
    switch_->Wake(i);
  }
}

bool BlockSync::EndShuffle(int first, int but, std::string* problem) {
  Warp& warp = warp_of(first);
  if (warp.arrived == 0 || warp.arrived + warp.done < warp.lanes) return false;
  *problem = ShuffleProblem(first, warp.lanes);
  if (!problem->empty()) return false;
  warp.arrived = 0;
  warp.turn ^= 1;
  if (place(but).state == State::kAtShuffle) place(but).state = State::kRunning;
  Release(first, warp.lanes, State::kAtShuffle, but);
  return true;
}

std::string BlockSync::ShuffleProblem(int first, int lanes) const {
  const Place* of_first = nullptr;
  for (int i = first; i < first + lanes; ++i) {
    if (place(i).state != State::kAtShuffle) continue;
    if (of_first == nullptr) of_first = &place(i);
    if (!Same(of_first->where, place(i).where) || of_first->mask != place(i).mask) {
      return "lanes of a warp shuffle apart: " + Describe(i) + ", another at " + NameOf(of_first->where);
    }
  }
  for (int i = first; i < first + lanes; ++i) {
    if ((of_first->mask >> (i - first) & 1u) == 0 || place(i).state == State::kAtShuffle) continue;
    return "a shuffle waits for a lane that is over: " + Describe(i) + ", the shuffle is at " +
           NameOf(of_first->where);
  }
  return "";
}

std::string BlockSync::BarrierProblem() const {
  for (int i = 1; i < threads_; ++i) {
    if (Same(place(0).where, place(i).where)) continue;
    return "threads of a block wait at different barriers: " + Describe(0) + ", " + Describe(i);
  }
  return "";
}

std::string BlockSync::StuckProblem() {
  const std::lock_guard lock(mutex_);
  for (const auto& warp : warps_) warp->mutex.lock();
  const Place* waiting = nullptr;
  int other = -1;
  std::string problem;
  for (int i = 0; i < threads_ && problem.empty(); ++i) {
    if (waiting == nullptr && (place(i).state == State::kAtBarrier || place(i).state == State::kAtShuffle)) {
      waiting = &place(i);
      problem = Describe(i);
    }
  }
  for (int i = 0; i < threads_ && waiting != nullptr; ++i) {
    if (place(i).state != waiting->state || !Same(place(i).where, waiting->where)) other = i;
  }
  if (other >= 0) problem = "divergent wait: " + problem + ", but " + Describe(other);
  for (const auto& warp : warps_) warp->mutex.unlock();
  return problem;
}

std::string BlockSync::Describe(int thread) const {
  const Place& at = place(thread);
  const std::string name = "thread " + std::to_string(thread);
  switch (at.state) {
    case State::kRunning:
      return name + " runs";
    case State::kAtBarrier:
      return name + " waits in __syncthreads at " + NameOf(at.where);
    case State::kAtShuffle:
      return name + " waits in a shuffle at " + NameOf(at.where);
    case State::kDone:
      return name + " has returned";
  }
  return name;
}

}  // namespace trainwright::cuda_emulation
