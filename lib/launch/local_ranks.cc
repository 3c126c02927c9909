#include "lib/launch/local_ranks.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/signals.h"
#include "lib/base/units.h"
#include "lib/launch/rank_place.h"

namespace trainwright {
namespace {

constexpr double kMostTimeToEnd_s = 10;  // between asking a rank to end and killing it
constexpr int kNotStarted = 127, kOtherRankFailed = static_cast<int>(ErrorCode::kIo);
constexpr std::array kPassedOn = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT};

/// A descriptor that closes with this object.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&&) = delete;
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void ThrowSocketError(const char* action) {
  throw SystemError("socket of the ranks", action, errno);
}

/// Listens on a free port of the loopback address.
Descriptor ListenOnLoopback() {
  Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (listener.get() < 0) ThrowSocketError("open");
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    ThrowSocketError("bind");
  }
  if (listen(listener.get(), SOMAXCONN) != 0) ThrowSocketError("listen");
  return listener;
}

int PortOf(const Descriptor& listener) {
  sockaddr_in address = {};
  socklen_t size = sizeof(address);
  if (getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    ThrowSocketError("name");
  }
  return ntohs(address.sin_port);
}

/// The signals that are passed on, to be read instead of handled while this lives.
class WaitingSignals {
 public:
  WaitingSignals() {
    sigset_t passed_on;
    sigemptyset(&passed_on);
    for (const int number : kPassedOn) sigaddset(&passed_on, number);
    pthread_sigmask(SIG_BLOCK, &passed_on, &before_);
    fd_ = signalfd(-1, &passed_on, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~WaitingSignals() {
    if (fd_ >= 0) close(fd_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WaitingSignals(const WaitingSignals&) = delete;
  WaitingSignals& operator=(const WaitingSignals&) = delete;
  /// Readable when one waits.
  int fd() const { return fd_; }
  const sigset_t& before() const { return before_; }
  std::optional<int> Next() const {
    signalfd_siginfo info;
    if (read(fd_, &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) return std::nullopt;
    return static_cast<int>(info.ssi_signo);
  }

 private:
  sigset_t before_;
  int fd_ = -1;
};

/// As exec takes them.
std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// This process's environment with other values of some variables.
std::vector<std::string> EnvironmentWith(const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const bool replaced = std::any_of(variables.begin(), variables.end(),
                                      [&](const auto& variable) { return variable.first == name; });
    if (!replaced) environment.push_back(text);
  }
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

/// By its name, so that lists of processes tell it; by the link to what runs where another file has taken its
/// place meanwhile.
std::string ThisProgram() {
  constexpr char kLink[] = "/proc/self/exe";
  std::error_code unknown;
  const std::filesystem::path path = std::filesystem::read_symlink(kLink, unknown);
  return std::filesystem::exists(path, unknown) ? path.string() : kLink;
}

/// What a child needs to become a rank, made before the fork.
struct RankProgram {
  const char* path;
  char** arguments;
  char** environment;
  int empty_input_fd;  ///< -1: it keeps its standard input
  int store_fd;        ///< that it inherits; -1: none
  const sigset_t* signals;
  pid_t launcher;
};

/// In the child: only what may be called there.
[[noreturn]] void BecomeRank(const RankProgram& rank) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != rank.launcher) _exit(kNotStarted);  // it ended before the line above
  if (rank.empty_input_fd >= 0 && dup2(rank.empty_input_fd, STDIN_FILENO) < 0) _exit(kNotStarted);
  if (rank.store_fd >= 0) fcntl(rank.store_fd, F_SETFD, 0);
  pthread_sigmask(SIG_SETMASK, rank.signals, nullptr);
  execve(rank.path, rank.arguments, rank.environment);
  dprintf(STDERR_FILENO, "%s cannot be run\n", rank.path);
  _exit(kNotStarted);
}

class LocalRanks {
 public:
  explicit LocalRanks(const LocalRanksOptions& options)
      : options_(options), program_(options.program.empty() ? ThisProgram() : options.program) {
    if (signals_.fd() < 0) throw SystemError("signals", "wait for", errno);
    ThrowIfStopped();
    signal(SIGCHLD, SIG_DFL);  // ignored, ends would not be told
    const Descriptor store = ListenOnLoopback(), empty_input(open("/dev/null", O_RDONLY | O_CLOEXEC));
    const std::string port = std::to_string(PortOf(store));
    for (int64_t rank = 0; rank < options.ranks; ++rank) Start(rank, store.get(), port, empty_input.get());
  }
  ~LocalRanks() {
    SendAll(SIGKILL);
    for (Rank& rank : ranks_) {
      if (rank.runs) Reap(&rank);
    }
  }
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;

  int Wait() {
    std::vector<pollfd> waits;
    while (std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.runs; })) {
      waits.assign(1, {signals_.fd(), POLLIN, 0});
      for (const Rank& rank : ranks_) waits.push_back({rank.runs ? rank.end_fd.get() : -1, POLLIN, 0});
      if (poll(waits.data(), waits.size(), TimeToDeadline_ms()) < 0 && errno != EINTR) {
        throw SystemError("ranks", "wait for", errno);
      }
      while (const auto signal = signals_.Next()) PassOn(*signal);
      for (size_t i = 0; i < ranks_.size(); ++i) {
        if (waits[i + 1].revents != 0) TakeEnd(static_cast<int64_t>(i));
      }
      EndOthers();
    }
    return Status();
  }

 private:
  struct Rank {
    pid_t pid;
    Descriptor end_fd;  ///< readable when the process has ended
    bool runs = true;
    bool was_ended = false;  ///< by a signal of ours
  };
  struct Failure {
    int64_t rank;
    int status;
    bool by_itself;
  };

  void Start(int64_t rank, int store_fd, const std::string& port, int empty_input_fd) {
    const bool serves = rank == 0;
    const std::string ranks = std::to_string(options_.ranks), number = std::to_string(rank);
    const std::vector<std::string> environment =
        EnvironmentWith({{"RANK", number},
                         {"WORLD_SIZE", ranks},
                         {"LOCAL_RANK", number},
                         {"LOCAL_WORLD_SIZE", ranks},
                         {"MASTER_ADDR", "127.0.0.1"},
                         {"MASTER_PORT", port},
                         {kLocalStoreVariable, serves ? std::to_string(store_fd) : "-"}});
    std::vector<char*> arguments = Pointers(options_.argv), variables = Pointers(environment);
    const RankProgram program = {.path = program_.c_str(),
                                 .arguments = arguments.data(),
                                 .environment = variables.data(),
                                 .empty_input_fd = serves ? -1 : empty_input_fd,
                                 .store_fd = serves ? store_fd : -1,
                                 .signals = &signals_.before(),
                                 .launcher = getpid()};
    const pid_t pid = fork();
    if (pid == 0) BecomeRank(program);
    const int fork_errno = errno;
    Descriptor end_fd(pid < 0 ? -1 : static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    const int watch_errno = errno;
    if (pid >= 0) ranks_.push_back({.pid = pid, .end_fd = std::move(end_fd)});
    if (pid < 0 || ranks_.back().end_fd.get() < 0) {
      SendAll(SIGKILL);
      for (Rank& started : ranks_) Reap(&started);
      throw SystemError("rank " + number, pid < 0 ? "start" : "watch", pid < 0 ? fork_errno : watch_errno,
                        "give the user more processes (ulimit -u), or lower --nproc");
    }
  }

  void SendAll(int signal) {
    for (const Rank& rank : ranks_) {
      if (rank.runs) kill(rank.pid, signal);
    }
  }

  void PassOn(int signal) {
    passed_on_.insert(signal);
    if (signal != SIGTSTP) {
      SendAll(signal);
      return;
    }
    SendAll(SIGSTOP);  // their groups have no terminal's session to honour SIGTSTP in
    kill(getpid(), SIGSTOP);
  }

  int Reap(Rank* rank) {
    int status = 0;
    while (waitpid(rank->pid, &status, 0) < 0 && errno == EINTR) {
    }
    rank->runs = false;
    return status;
  }

  void TakeEnd(int64_t number) {
    Rank& rank = ranks_[static_cast<size_t>(number)];
    const int end = Reap(&rank);
    const int signal = WIFSIGNALED(end) ? WTERMSIG(end) : 0;
    const int status = signal != 0 ? 128 + signal : WEXITSTATUS(end);
    if (status == 0) return;
    if (signal != 0 && !rank.was_ended && !passed_on_.contains(signal)) {
      LogError("rank " + std::to_string(number) + ": was killed by signal " + std::to_string(signal) + " (" +
               strsignal(signal) + ")");
      if (signal == SIGKILL) LogHint("the system kills processes when memory runs out: see its log (dmesg)");
    }
    if (failures_.empty()) first_failure_ = std::chrono::steady_clock::now();
    failures_.push_back({.rank = number, .status = status, .by_itself = !rank.was_ended});
  }

  double KillAfter_s() const { return options_.grace_s + std::min(options_.grace_s, kMostTimeToEnd_s); }
  /// As poll takes it.
  int TimeToDeadline_ms() const {
    if (failures_.empty() || sent_ == SIGKILL) return -1;
    const double left_s = (sent_ == 0 ? options_.grace_s : KillAfter_s()) - SecondsSince(first_failure_);
    return static_cast<int>(std::clamp(left_s * 1e3, 0.0, 1e6)) + 1;
  }
  /// Sends what is due to the ranks that still run though one has failed.
  void EndOthers() {
    if (failures_.empty()) return;
    const double passed_s = SecondsSince(first_failure_);
    const int due = passed_s < options_.grace_s ? 0 : passed_s < KillAfter_s() ? SIGTERM : SIGKILL;
    if (due == sent_) return;
    sent_ = due;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      Rank& rank = ranks_[i];
      if (!rank.runs) continue;
      LogWarning("rank " + std::to_string(i) + ": still runs " + FormatDuration(passed_s) + " after rank " +
                 std::to_string(failures_.front().rank) + " ended with status " +
                 std::to_string(failures_.front().status) + ", and is " +
                 (due == SIGTERM ? "asked to end" : "killed"));
      rank.was_ended = true;
      kill(rank.pid, due);
      kill(rank.pid, SIGCONT);  // a stopped one notices only then
    }
  }

  int Status() const {
    const auto first = [&](const auto& counts) {
      const auto found = std::find_if(failures_.begin(), failures_.end(), counts);
      return found == failures_.end() ? 0 : found->status;
    };
    int status = first([](const Failure& end) { return end.by_itself && end.status != kOtherRankFailed; });
    if (status == 0) status = first([](const Failure& end) { return end.by_itself; });
    return status;
  }

  const LocalRanksOptions& options_;
  const std::string program_;
  WaitingSignals signals_;
  std::vector<Rank> ranks_;
  std::vector<Failure> failures_;  // in the order of the ends
  std::chrono::steady_clock::time_point first_failure_;
  std::set<int> passed_on_;
  int sent_ = 0;  // to end what still ran
};

}  // namespace

int RunLocalRanks(const LocalRanksOptions& options) {
  return LocalRanks(options).Wait();
}

}  // namespace trainwright
