#include "lib/dist/heartbeat.h"

#include <algorithm>
#include <utility>

#include "lib/base/elapsed.h"
#include "lib/base/signals.h"
#include "lib/base/units.h"
#include "lib/dist/heartbeat_thread.h"

namespace trainwright {
namespace {

// Parts of the time-out. The silence of a store is seen kStoreSilence + kSureSilence after its last answer; a
// verdict on a rank that died reaches all others before kVerdict (heartbeat_thread.cc).
constexpr double kStoreSilence = 1.0 / 3, kSureSilence = 1.0 / 10, kVerdict = 3.0 / 4, kLastWords = 1.0 / 2;
constexpr double kComing = 1.0 / 4;
constexpr double kSlice_s = 0.02, kMostToOpen_s = 1;

}  // namespace

Heartbeat::Heartbeat(const RankPlace& place, double timeout_s)
    : state_(std::make_shared<HeartbeatState>(place, timeout_s)),
      thread_([state = state_] { HeartbeatThread(state).Run(); }) {}

Heartbeat::~Heartbeat() {
  if (!over_) Fail({state_->place.rank, RankName(state_->place.rank), "left the run without a word", ""});
  bool ended = false;
  {
    const std::lock_guard lock(state_->mutex);
    ended = state_->ended;
  }
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void Heartbeat::AwaitAll() {
  std::unique_lock lock(state_->mutex);
  const auto done = [this] { return state_->all_came || state_->fault; };
  const auto wait = [&](double most_s) {
    const auto start = Clock::now();
    while (!done() && SecondsSince(start) < most_s) {
      ThrowIfStopped();
      state_->changed.wait_for(lock, std::chrono::duration<double>(kSlice_s), done);
    }
  };
  wait(state_->timeout_s);
  // Where there is a store, it is for the thread to say who did not come.
  if (state_->store_is_open) wait(kComing * state_->timeout_s);
  if (!done()) {
    state_->fault =
        DidNotCome(state_->place, state_->timeout_s,
                   state_->store_is_open ? "the store does not answer" : "nobody serves the store");
  }
  if (state_->fault) throw ErrorOf(*state_->fault, state_->place.rank);
}

void Heartbeat::Check() {
  if (const std::optional<Fault> fault = Verdict()) throw ErrorOf(*fault, state_->place.rank);
}

Error Heartbeat::Explain(const std::string& problem) {
  const auto start = Clock::now();
  std::optional<Fault> fault;
  while (!(fault = Verdict()) && SecondsSince(start) < kVerdict * state_->timeout_s) {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait_for(lock, std::chrono::duration<double>(kSlice_s),
                             [this] { return state_->fault.has_value(); });
  }
  if (!fault) {  // all ranks live: it was the connection alone
    Fail({state_->place.rank, RankName(state_->place.rank), "lost its connection to another rank: " + problem,
          "the network between the machines; GLOO_SOCKET_IFNAME names the interface to use"});
    fault = Verdict();
  }
  return ErrorOf(*fault, state_->place.rank);
}

void Heartbeat::Announce(const Fault& fault) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (state_->fault || state_->to_publish) return;
  state_->to_publish = fault;
  state_->changed.notify_all();
}

void Heartbeat::Fail(const Fault& fault) noexcept {
  over_ = true;
  std::unique_lock lock(state_->mutex);
  if (state_->fault && StoreIsSilent()) return;
  if (!state_->fault && !state_->to_publish) {
    state_->to_publish = fault;
    state_->changed.notify_all();
  }
  // Whoever is to serve the store may never come: there is nobody to tell then.
  const bool seeks_store = !state_->fault && !state_->store_is_open && !state_->serves();
  const double most_s = kLastWords * state_->timeout_s;
  AwaitEnd(&lock, seeks_store ? std::min(most_s, kMostToOpen_s) : most_s);
  if (!state_->fault) state_->fault = fault;
}

void Heartbeat::Leave() noexcept {
  over_ = true;
  std::unique_lock lock(state_->mutex);
  state_->leaving = true;
  state_->changed.notify_all();
  AwaitEnd(&lock, state_->timeout_s);
}

void Heartbeat::AwaitEnd(std::unique_lock<std::mutex>* lock, double most_s) {
  state_->changed.wait_for(*lock, std::chrono::duration<double>(most_s), [this] { return state_->ended; });
}

std::optional<Fault> Heartbeat::Verdict() {
  const bool silent = StoreIsSurelySilent();
  const std::lock_guard lock(state_->mutex);
  if (silent && !state_->fault) {
    state_->fault = FaultOfStore(
        state_->place, "killed, stopped or cut off: " + StoreName(state_->place) + " has not answered for " +
                           FormatFixed((kStoreSilence + kSureSilence) * state_->timeout_s, 1) + " s");
  }
  return state_->fault;
}

bool Heartbeat::StoreIsSilent() const {
  const int64_t asked_ns = state_->asked_ns;
  const std::chrono::nanoseconds silence =
      Clock::now().time_since_epoch() - std::chrono::nanoseconds(asked_ns);
  return asked_ns != 0 && silence > std::chrono::duration<double>(kStoreSilence * state_->timeout_s);
}

bool Heartbeat::StoreIsSurelySilent() {
  const std::chrono::duration<double> sure(kSureSilence * state_->timeout_s);
  const auto now = Clock::now();
  const bool looked_lately = now - std::exchange(looked_, now) < sure;
  if (!StoreIsSilent()) {
    silent_since_.reset();
    return false;
  }
  if (!silent_since_ || !looked_lately) silent_since_ = now;
  return now - *silent_since_ > sure;
}

}  // namespace trainwright
