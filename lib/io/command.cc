#include "lib/io/command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/io/descendants.h"

namespace trainwright {
namespace {

constexpr size_t kMostOutputBytes = size_t{256} << 20;
constexpr size_t kErrorTailBytes = 4096;
constexpr int kNotStarted = 127;
constexpr int kLookAgain_ms = 100;
constexpr double kGrace_s = 1;  ///< between the request to end and the end

/// Two ends of a pipe, closed on the way out.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) throw SystemError("pipe", "make", errno);
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    CloseRead();
    CloseWrite();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  /// The caller's from now on.
  int TakeReadEnd() { return std::exchange(ends_[0], -1); }
  void CloseRead() { Close(&ends_[0]); }
  void CloseWrite() { Close(&ends_[1]); }

 private:
  static void Close(int* fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }
  std::array<int, 2> ends_ = {-1, -1};
};

/// The words of a command that is run without a shell.
std::vector<std::string> WordsOf(const std::string& command, const CommandOptions& options) {
  std::vector<std::string> words;
  if (options.shell) {
    words = {"/bin/sh", "-c", command, "sh"};
    words.insert(words.end(), options.arguments.begin(), options.arguments.end());
    return words;
  }
  std::istringstream stream(command);
  for (std::string word; stream >> word;) words.push_back(word);
  if (words.empty()) throw Error(ErrorCode::kUsage, "command", "is empty");
  return words;
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

/// rchar and wchar of a process that has ended and is not reaped yet.
void ReadIoCounts(pid_t pid, CommandRun* run) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/io");
  std::string name;
  for (int64_t count = 0; file >> name >> count;) {
    if (name == "rchar:") run->read_bytes = count;
    if (name == "wchar:") run->written_bytes = count;
  }
}

enum class PipeState { kMayHoldMore, kHoldsNothing, kEnded };

/// Passes on what one read gets from a pipe, without waiting: who writes as fast as we read must not keep us
/// from looking at the time.
template <typename Use>
PipeState ReadPiece(int fd, const Use& use) {
  std::array<char, 1 << 16> piece;
  const ssize_t count = read(fd, piece.data(), piece.size());
  if (count == 0) return PipeState::kEnded;
  if (count < 0) {
    if (errno == EINTR) return PipeState::kMayHoldMore;
    return errno == EAGAIN ? PipeState::kHoldsNothing : PipeState::kEnded;
  }
  use(std::string_view(piece.data(), static_cast<size_t>(count)));
  return PipeState::kMayHoldMore;
}

/// As exec takes them.
std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// Appends to the end of the errors.
void AppendToTail(std::string_view piece, std::string* tail) {
  tail->append(piece);
  if (tail->size() > kErrorTailBytes) tail->erase(0, tail->size() - kErrorTailBytes);
}

/// Takes a piece of a command's standard output as the options ask.
void TakeOutput(const std::string& command, const CommandOptions& options, std::string_view piece,
                std::string* kept) {
  if (options.on_output) options.on_output(piece);
  if (!options.keep_output) return;
  kept->append(piece);
  if (kept->size() <= kMostOutputBytes) return;
  throw Error(ErrorCode::kBadInput, command, "writes more than 256 MiB to standard output", "",
              "send its output to a file in {dir}");
}

/// Waits for what is left of a process group, which was asked to end; kills it where it does not, or a signal
/// asks this process to stop. What cannot be killed is not waited for.
/// \pre its leader has been waited for
void AwaitGroup(pid_t group, bool reaps_orphans) {
  const auto start = std::chrono::steady_clock::now();
  for (bool killed = false; kill(-group, 0) == 0;) {
    if (SecondsSince(start) >= 2 * kGrace_s) return;
    if (!killed && (SecondsSince(start) >= kGrace_s || StopSignal() != 0)) {
      kill(-group, SIGKILL);
      killed = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (reaps_orphans) ReapOrphans();
  }
}

/// The running command: its process group dies with this object, or all that descends from it.
class Child {
 public:
  Child(const std::vector<std::string>& words, const CommandOptions& options, int output_fd, int error_fd)
      : all_descendants_(options.all_descendants) {
    // Made before the fork: what the child of a process with threads may call is little.
    std::vector<char*> arguments = Pointers(words), variables = Pointers(options.environment);
    for (char** variable = environ; *variable != nullptr; ++variable) {
      variables.insert(variables.end() - 1, *variable);
    }
    pid_ = fork();
    if (pid_ < 0) throw SystemError(words[0], "fork", errno);
    if (pid_ == 0) {
      setpgid(0, 0);
      for (const int number : {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM}) signal(number, SIG_DFL);
      const int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
      if (dup2(null_fd, STDIN_FILENO) < 0 || dup2(output_fd < 0 ? null_fd : output_fd, STDOUT_FILENO) < 0 ||
          dup2(error_fd, STDERR_FILENO) < 0) {
        _exit(kNotStarted);
      }
      execvpe(arguments[0], arguments.data(), variables.data());
      dprintf(STDERR_FILENO, "%s cannot be run\n", arguments[0]);
      _exit(kNotStarted);
    }
    setpgid(pid_, pid_);  // whoever is first
    end_fd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  }
  ~Child() {
    if (end_fd_ >= 0) close(end_fd_);
    if (reaped_) return;
    Kill();
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    if (all_descendants_) ReapOrphans();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void Kill() const noexcept {
    kill(-pid_, SIGKILL);
    if (!all_descendants_) return;
    try {
      KillDescendants(pid_);
    } catch (const std::exception&) {  // the process group has been killed, if not more
    }
  }
  /// \pre not reaped, or somebody is left of the group: its number is nobody else's until then
  void SignalGroup(int number) const { kill(-pid_, number); }
  /// The process and its group.
  pid_t pid() const { return pid_; }
  /// A descriptor that becomes readable when the process ends.
  int end_fd() const { return end_fd_; }
  void Reap(CommandRun* run) {
    ReadIoCounts(pid_, run);
    int status = 0;
    rusage usage{};
    while (wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) {
    }
    reaped_ = true;
    if (all_descendants_) ReapOrphans();
    run->exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    run->user_s = Seconds(usage.ru_utime);
    run->system_s = Seconds(usage.ru_stime);
    run->max_memory_bytes = static_cast<int64_t>(usage.ru_maxrss) * 1024;
  }

 private:
  const bool all_descendants_;
  pid_t pid_ = -1;
  int end_fd_ = -1;
  bool reaped_ = false;
};

}  // namespace

LeftGroup::~LeftGroup() {
  // While somebody is left of the group no process has its number: where one has, all members had ended.
  if (group_ > 0 && kill(group_, 0) != 0 && errno == ESRCH && kill(-group_, SIGTERM) == 0) {
    AwaitGroup(group_, reaps_orphans_);
  }
  if (error_fd_ >= 0) close(error_fd_);
}

void LeftGroup::Hold(pid_t group, int error_fd, bool reaps_orphans) {
  TRAINWRIGHT_CHECK(group_ < 0 && error_fd_ < 0);
  error_fd_ = error_fd;  // which what has left the group may have, too
  if (kill(-group, 0) == 0) group_ = group;
  reaps_orphans_ = reaps_orphans;
}

CommandRun RunCommand(const std::string& command, const CommandOptions& options) {
  const std::vector<std::string> words = WordsOf(command, options);
  Pipe errors;
  std::optional<Pipe> output;
  if (options.keep_output || options.on_output) output.emplace();
  CommandRun run;
  const auto start = std::chrono::steady_clock::now();
  Child child(words, options, output ? output->write_end() : -1, errors.write_end());
  errors.CloseWrite();
  if (output) output->CloseWrite();

  if (child.end_fd() < 0) throw SystemError(words[0], "watch", errno);

  enum { kEnd, kErrors, kOutput, kBeside };
  std::array<pollfd, 4> waits = {{{child.end_fd(), POLLIN, 0},
                                  {errors.read_end(), POLLIN, 0},
                                  {output ? output->read_end() : -1, POLLIN, 0},
                                  {options.beside != nullptr ? options.beside->error_fd() : -1, POLLIN, 0}}};
  // Whether there may be more without waiting.
  const auto read_from = [&](int which) {
    if (waits[which].fd < 0) return false;
    const PipeState state = ReadPiece(waits[which].fd, [&](std::string_view piece) {
      if (which == kErrors) AppendToTail(piece, &run.error_tail);
      if (which == kOutput) TakeOutput(command, options, piece, &run.output);
    });
    if (state == PipeState::kEnded) waits[which].fd = -1;
    return state == PipeState::kMayHoldMore;
  };
  while (true) {
    if (options.ends_with_signals) ThrowIfStopped();
    const double left_s = options.timeout_s - SecondsSince(start);
    if (left_s <= 0 && !run.timed_out) {
      run.timed_out = true;
      child.Kill();
    }
    int wait_ms = left_s <= 0 ? -1 : static_cast<int>(std::min(left_s * 1e3, 1e6)) + 1;
    if (options.abandoned != nullptr && !run.timed_out) {
      if (*options.abandoned) child.Kill();
      wait_ms = std::min(wait_ms, kLookAgain_ms);
    }
    if (poll(waits.data(), waits.size(), wait_ms) < 0 && errno != EINTR) {
      throw SystemError("pipe", "wait for", errno);
    }
    if (waits[kEnd].revents != 0) break;
    for (const int which : {kErrors, kOutput, kBeside}) {
      if (waits[which].revents != 0) read_from(which);
    }
  }
  run.wall_s = SecondsSince(start);
  if (options.ends_group) child.SignalGroup(SIGTERM);
  // What it wrote is there. A process that it left may go on without end, even where it cannot be killed.
  for (const int which : {kErrors, kOutput}) {
    constexpr int kMostPiecesOfPipe = 64;
    for (int late_pieces = 0; late_pieces < kMostPiecesOfPipe && read_from(which);) {
      if (options.ends_with_signals) ThrowIfStopped();
      const bool is_abandoned = options.abandoned != nullptr && *options.abandoned;
      const bool is_late = SecondsSince(start) >= options.timeout_s;
      if (options.ends_group && SecondsSince(start) >= run.wall_s + kGrace_s) child.SignalGroup(SIGKILL);
      if (!is_late && !is_abandoned) continue;
      run.timed_out |= is_late;
      child.Kill();
      ++late_pieces;
    }
  }
  child.Reap(&run);
  if (options.ends_group) AwaitGroup(child.pid(), options.all_descendants);
  if (options.leaves != nullptr) {
    options.leaves->Hold(child.pid(), errors.TakeReadEnd(), options.all_descendants);
  }
  return run;
}

}  // namespace trainwright
