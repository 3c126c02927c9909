#include "lib/dist/heartbeat_thread.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "lib/base/elapsed.h"
#include "lib/base/units.h"
#include "lib/dist/store_probe.h"
#include "lib/dist/watched_call.h"

namespace trainwright {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kFault[] = "fault", kRun[] = "run", kCame[] = "came", kLost[] = "lost";
constexpr char kNoFault[] = "none", kOwnRankHint[] = "give each process a rank of its own";
// Parts of the time-out. A rank is known to be silent at most kPatience + 2 kPeriod after its last beat, and
// all others know one kPeriod later, which leaves time for a slow machine. Well within kSettle all ranks
// whose connection was cut have noticed it, since they ask every kPeriod.
constexpr double kPeriod = 1.0 / 20, kPatience = 1.0 / 2, kLinger = 1.0 / 4, kReconnect = 1.0 / 3;
constexpr double kSettle = 1.0 / 5;
constexpr double kFirstPause_s = 0.005, kLongestPause_s = 0.1;

std::string Key(const std::string& kind, int64_t rank) {
  return kind + "/" + std::to_string(rank);
}

/// While it lives, the store owes an answer.
class Question {
 public:
  /// \param grace_s beyond which its silence counts
  explicit Question(HeartbeatState* state, double grace_s = 0) : state_(state) {
    const auto since =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(grace_s));
    state_->asked_ns = std::chrono::nanoseconds(since.time_since_epoch()).count();
  }
  ~Question() { state_->asked_ns = 0; }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

 private:
  HeartbeatState* const state_;
};

/// Rank 0 watches all others, and they watch it: beats cost as much in a large world as in a small one.
std::vector<int64_t> WatchedBy(const RankPlace& place) {
  if (place.rank != 0) return {0};
  std::vector<int64_t> ranks;
  for (int64_t rank = 1; rank < place.ranks; ++rank) ranks.push_back(rank);
  return ranks;
}

/// Ends the wait for a call: c10d's client may pause before it tries again for longer than it was given.
class Deadline final : public FaultWatch {
 public:
  explicit Deadline(double timeout_s) : timeout_s_(timeout_s) {}
  void Check() override {
    if (SecondsSince(start_) > timeout_s_) throw Explain("no answer");
  }
  Error Explain(const std::string& problem) override {
    return Error(ErrorCode::kIo, "the store of the ranks", problem);
  }

 private:
  const Clock::time_point start_ = Clock::now();
  const double timeout_s_;
};

/// Which run a process is one of.
std::string EncodeRun(const RankPlace& place) {
  return std::to_string(place.ranks) + " " + place.launch;
}

/// What a run has that the one of a process has not; empty: they may be the same.
/// \param run encoded
std::string DifferenceOf(const std::string& run, const RankPlace& place) {
  const size_t ranks_end = std::min(run.find(' '), run.size());
  const std::string ranks = run.substr(0, ranks_end), own_ranks = std::to_string(place.ranks);
  const std::string launch = run.substr(std::min(ranks_end + 1, run.size()));
  if (ranks != own_ranks) return "of " + ranks + " ranks and not of " + own_ranks;
  if (launch.empty() || place.launch.empty() || launch == place.launch) return "";
  return "started as " + launch + " and not as " + place.launch;
}

Fault FaultOfRanks(const std::vector<int64_t>& ranks, const std::string& what, const std::string& hint) {
  return {ranks.size() == 1 ? ranks[0] : -1, RankNames(ranks), what, hint};
}

}  // namespace

HeartbeatThread::HeartbeatThread(std::shared_ptr<HeartbeatState> state)
    : state_(std::move(state)), place_(state_->place), timeout_s_(state_->timeout_s) {}

void HeartbeatThread::Run() noexcept {
  try {
    if (Open() && Come()) Beat();
  } catch (const std::exception& problem) {
    if (!KnowsFault()) Diagnose(ProblemOf(problem));
  }
  store_.reset();
  const std::lock_guard lock(state_->mutex);
  state_->ended = true;
  state_->changed.notify_all();
}

bool HeartbeatThread::Open() {
  try {
    const Question question(state_.get());
    store_ = std::make_unique<RankStore>(
        place_, state_->serves() ? RankStore::Role::kServe : RankStore::Role::kUse, timeout_s_);
    const std::lock_guard lock(state_->mutex);
    state_->store_is_open = true;
    return true;
  } catch (const std::exception& problem) {
    if (state_->serves()) {
      Know({0, RankName(0), "cannot serve " + StoreName(place_) + ": " + ProblemOf(problem),
            "MASTER_PORT names another port"});
    } else {
      Know(DidNotCome(place_, timeout_s_, ProblemOf(problem)));
    }
    return false;
  }
}

bool HeartbeatThread::Enter() {
  const Question question(state_.get());
  store_->Exchange(kFault, "", kNoFault);
  // Of a store that rank 0 serves the run is rank 0's, whichever process is the first to find it.
  const bool says_which = state_->serves() || place_.store_is_served;
  const std::string own = EncodeRun(place_);
  const std::string run = says_which ? store_->Exchange(kRun, "", own) : store_->Get({kRun})[0];
  if (const std::string difference = DifferenceOf(run, place_); !difference.empty()) {
    KnowAnotherRun(difference);
    return false;
  }
  if (store_->Add(Key("processes", place_.rank), 1) > 1) {
    if (store_->Add(kCame, 0) >= place_.ranks) {
      KnowAnotherRun("whose ranks are all there");
    } else if (!place_.launch.empty() && run == own) {
      Publish({place_.rank, RankName(place_.rank), "is there twice", kOwnRankHint});
    } else {  // of this run or of another: the one that came first is as likely to be right
      KnowAnotherRun("which has a process of this rank");
    }
    return false;
  }
  store_->Set(Key("beat", place_.rank), "0");
  store_->Add(kCame, 1);
  return true;
}

void HeartbeatThread::KnowAnotherRun(const std::string& which) {
  Know({place_.rank, RankName(place_.rank),
        "found another run at " + StoreName(place_) + ", " + which + "; it goes on without this process",
        "MASTER_PORT names another port; each process of a run has a rank of its own"});
}

bool HeartbeatThread::Come() {
  double pause_s = kFirstPause_s;
  if (!Enter()) return false;
  while (true) {
    int64_t came = 0;
    std::string fault;
    {
      const Question question(state_.get());
      came = store_->Add(kCame, 0);
      fault = store_->Get({kFault})[0];
    }
    if (fault != kNoFault) {
      Know(DecodeFault(fault));
      Linger();
      return false;
    }
    if (came >= place_.ranks) break;
    if (AwaitWish(pause_s) != Wish::kNone) {  // before the world is there, one can only fail
      PublishWish();
      return false;
    }
    pause_s = std::min(kLongestPause_s, pause_s * 2);
    if (SecondsSince(start_) < timeout_s_) continue;
    const std::vector<int64_t> missing = Missing();
    if (missing.empty()) continue;  // the last one came just now
    const std::vector<int64_t> twice = CameTwice();
    Publish(FaultOfRanks(missing, "did not come within " + FormatFixed(timeout_s_, 0) + " s",
                         twice.empty() ? "start all ranks; --dist-timeout waits longer"
                                       : RankNames(twice) + " came more than once: " + kOwnRankHint));
    return false;
  }
  const std::lock_guard lock(state_->mutex);
  state_->all_came = true;
  state_->changed.notify_all();
  return true;
}

std::vector<int64_t> HeartbeatThread::Missing() {
  std::vector<int64_t> missing;
  for (int64_t rank = 0; rank < place_.ranks; ++rank) {
    if (!store_->HasAll({Key("beat", rank)})) missing.push_back(rank);
  }
  return missing;
}

std::vector<int64_t> HeartbeatThread::CameTwice() {
  std::vector<int64_t> twice;
  for (int64_t rank = 0; rank < place_.ranks; ++rank) {
    if (store_->Add(Key("processes", rank), 0) > 1) twice.push_back(rank);
  }
  return twice;
}

void HeartbeatThread::Beat() {
  BeatWatch watch(WatchedBy(place_), kPatience * timeout_s_, Clock::now());
  std::vector<std::string> keys{kFault};
  for (const int64_t rank : WatchedBy(place_)) keys.push_back(Key("beat", rank));
  while (true) {
    std::vector<std::string> values;
    {
      const Question question(state_.get());
      store_->Set(Key("beat", place_.rank), std::to_string(++beats_));
      values = store_->Get(keys);
    }
    const std::string fault = values[0];
    values.erase(values.begin());
    if (fault != kNoFault) {
      Know(DecodeFault(fault));
      return Linger();
    }
    const std::vector<int64_t> silent = watch.Silent(values, Clock::now());
    if (!silent.empty()) {
      return Publish(FaultOfRanks(
          silent,
          "killed, stopped or cut off: no sign of life for " + FormatFixed(kPatience * timeout_s_, 1) + " s",
          "its own messages and its machine's log (dmesg) may say why"));
    }
    switch (AwaitWish(kPeriod * timeout_s_)) {
      case Wish::kNone:
        break;
      case Wish::kPublish:
        return PublishWish();
      case Wish::kLeave:
        return Leave();
    }
  }
}

void HeartbeatThread::Publish(const Fault& fault) {
  std::string published;
  {
    const Question question(state_.get());
    published = store_->Exchange(kFault, kNoFault, EncodeFault(fault));
  }
  Know(DecodeFault(published));
  Linger();
}

void HeartbeatThread::PublishWish() {
  std::optional<Fault> own;
  {
    const std::lock_guard lock(state_->mutex);
    own = state_->to_publish;
  }
  if (own) Publish(*own);
}

bool HeartbeatThread::KnowsFault() {
  const std::lock_guard lock(state_->mutex);
  return state_->fault.has_value();
}

void HeartbeatThread::Know(Fault fault) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->fault) state_->fault = std::move(fault);
  state_->changed.notify_all();
}

void HeartbeatThread::Linger() {
  int64_t at_fault = 0;
  {
    const std::lock_guard lock(state_->mutex);
    at_fault = state_->fault->rank;
  }
  store_->Set(Key("seen", place_.rank), "1");
  if (state_->serves()) {
    AwaitOthers("seen", at_fault, kLinger * timeout_s_);
  } else {
    // What is not read back may be lost when the connection is closed.
    store_->Get({Key("seen", place_.rank)});
  }
}

void HeartbeatThread::Leave() {
  store_->Set(Key("left", place_.rank), "1");
  if (state_->serves()) {
    AwaitOthers("left", -1, kPatience * timeout_s_);
  } else {
    store_->Get({Key("left", place_.rank)});
  }
}

void HeartbeatThread::AwaitOthers(const std::string& kind, int64_t but, double most_s) {
  std::vector<std::string> keys;
  for (int64_t rank = 0; rank < place_.ranks; ++rank) {
    if (rank != place_.rank && rank != but) keys.push_back(Key(kind, rank));
  }
  const auto start = Clock::now();
  while (!keys.empty() && SecondsSince(start) < most_s && !store_->HasAll(keys)) {
    store_->Set(Key("beat", place_.rank), std::to_string(++beats_));
    std::this_thread::sleep_for(std::chrono::duration<double>(kFirstPause_s));
  }
}

void HeartbeatThread::Diagnose(const std::string& problem) {
  if (state_->serves()) {
    return Know({0, RankName(0), "cut off from the store that it serves itself: " + problem, ""});
  }
  const Fault gone =
      FaultOfStore(place_, "killed or cut off: nobody serves " + StoreName(place_) + " any more");
  if (!ListensAt(place_.store_host, place_.store_port, kReconnect * timeout_s_)) return Know(gone);
  try {
    // Twice as patient: the world has not ended while this goes on.
    const Question question(state_.get(), kReconnect * timeout_s_);
    const auto connect = [place = place_, timeout_s = kReconnect * timeout_s_] {
      return std::make_unique<RankStore>(place, RankStore::Role::kUse, timeout_s);
    };
    Deadline deadline(kReconnect * timeout_s_);
    store_ = CallWatched<std::unique_ptr<RankStore>>(connect, ProblemOf, &deadline);
    const int64_t cut = OthersLostTheStore() ? 0 : place_.rank;
    const std::string fault = store_->Exchange(
        kFault, kNoFault,
        EncodeFault({cut, RankName(cut), "its connections were cut: " + problem,
                     "the network between the machines, or what limits connections on one of them"}));
    Know(DecodeFault(fault));
    store_->Set(Key("seen", place_.rank), "1");
    store_->Get({Key("seen", place_.rank)});
  } catch (const std::exception&) {
    Know(gone);
  }
}

bool HeartbeatThread::OthersLostTheStore() {
  int64_t lost = store_->Add(kLost, 1);
  for (const auto start = Clock::now(); lost < 2 && SecondsSince(start) < kSettle * timeout_s_;
       lost = store_->Add(kLost, 0)) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kFirstPause_s));
  }
  return lost >= 2;
}

HeartbeatThread::Wish HeartbeatThread::AwaitWish(double most_s) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, std::chrono::duration<double>(most_s),
                           [this] { return state_->to_publish || state_->leaving; });
  if (state_->to_publish) return Wish::kPublish;
  return state_->leaving ? Wish::kLeave : Wish::kNone;
}

}  // namespace trainwright
