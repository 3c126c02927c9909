#include "tests/dist/rank_processes.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/device/torch_log.h"

namespace trainwright::test {
namespace {

constexpr std::chrono::milliseconds kLookAgain{2};
constexpr int kLookForEnds_ms = 50, kMostOpenings = 20;

void Require(bool condition, const char* call) {
  if (condition) return;
  std::perror(call);
  std::abort();
}

}  // namespace

std::pair<int, int> ListenOnLoopback() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  Require(bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
  Require(listen(fd, 128) == 0, "listen");
  Require(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0, "getsockname");
  return {fd, ntohs(address.sin_port)};
}

void RankTalk::Ready() const {
  Require(write(ready_fd_, "r", 1) == 1, "write");
}

void RankTalk::AwaitGo() const {
  char byte = 0;
  Require(read(go_fd_, &byte, 1) == 1, "read");
}

void RankTalk::Report(const std::string& text) const {
  WriteFile(report_path_, text);
}

RankProcesses::RankProcesses(const RankProcessOptions& options, const RankBody& body)
    : start_(std::chrono::steady_clock::now()), processes_(options.ranks), ends_(options.ranks) {
  Require(pipe(ready_) == 0 && pipe(go_) == 0, "pipe");
  RankPlace place = options.prepared.value_or(RankPlace{});
  place.ranks = place.local_ranks = options.ranks;
  place.launcher = "the test";
  int listen_fd = -1;
  if (!options.prepared) {
    place.store_host = "127.0.0.1";
    std::tie(listen_fd, place.store_port) = ListenOnLoopback();
  }
  if (!options.hand_over_listen_fd && listen_fd >= 0) {
    close(listen_fd);
    listen_fd = -1;
  }
  std::vector<int64_t> started = options.started;
  for (int64_t rank = 0; started.empty() && rank < options.ranks; ++rank) processes_[rank] = -1;
  for (const int64_t rank : started) processes_[rank] = -1;
  std::fflush(nullptr);
  for (int64_t rank = 0; rank < options.ranks; ++rank) {
    if (processes_[rank] == 0) continue;
    place.rank = place.local_rank = rank;
    processes_[rank] = fork();
    Require(processes_[rank] >= 0, "fork");
    if (processes_[rank] == 0) BeRank(place, options.timeout_s, body, listen_fd);
  }
  if (listen_fd >= 0) close(listen_fd);
}

RankProcesses::~RankProcesses() {
  for (size_t rank = 0; rank < processes_.size(); ++rank) {
    if (processes_[rank] <= 0 || ends_[rank]) continue;
    kill(processes_[rank], SIGKILL);
    waitpid(processes_[rank], nullptr, 0);
  }
  for (const int fd : {ready_[0], ready_[1], go_[0], go_[1]}) close(fd);
}

void RankProcesses::BeRank(RankPlace place, double timeout_s, const RankBody& body, int listen_fd) noexcept {
  if (place.rank == 0 && listen_fd >= 0) {
    place.store_listen_fd = listen_fd;
  } else if (listen_fd >= 0) {
    close(listen_fd);
  }
  QuietTorchLog();
  signal(SIGPIPE, SIG_IGN);  // as the ranks of tools do
  const RankTalk talk(ready_[1], go_[0], folder_.path("rank-" + std::to_string(place.rank)));
  int status = 0;
  std::unique_ptr<C10dWorld> world;
  try {
    world = std::make_unique<C10dWorld>(place, C10dWorldOptions{timeout_s});
    body(world.get(), talk);
  } catch (const Error& error) {
    status = static_cast<int>(error.code());
    talk.Report(error.what());
    if (world) world->Fail(status, error.problem());
  } catch (const std::exception& problem) {
    status = static_cast<int>(ErrorCode::kInternal);
    talk.Report(problem.what());
  }
  world.reset();
  WriteFile(LeftPath(place.rank),
            std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()));
  std::exit(status);  // what a main's end does, with the threads that are left behind
}

bool RankProcesses::AwaitReady() {
  size_t ready = 0;
  while (ready < processes_.size()) {
    pollfd wait = {.fd = ready_[0], .events = POLLIN, .revents = 0};
    char byte = 0;
    if (poll(&wait, 1, kLookForEnds_ms) == 1 && read(ready_[0], &byte, 1) == 1) {
      ++ready;
      continue;
    }
    Look();
    if (std::any_of(ends_.begin(), ends_.end(), [](const auto& end) { return end.has_value(); }))
      return false;
  }
  return true;
}

void RankProcesses::Go() {
  start_ = std::chrono::steady_clock::now();
  Require(write(go_[1], "g", 1) == 1, "write");
}

void RankProcesses::Signal(int64_t rank, int signal) const {
  kill(processes_[rank], signal);
}

void RankProcesses::Look() {
  for (size_t rank = 0; rank < processes_.size(); ++rank) {
    int status = 0;
    if (processes_[rank] <= 0 || ends_[rank] || waitpid(processes_[rank], &status, WNOHANG) <= 0) continue;
    ends_[rank] = {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), SecondsSince(start_)};
  }
}

bool RankProcesses::Await(double most_s, int64_t but) {
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    Look();
    bool all = true;
    for (size_t rank = 0; rank < processes_.size(); ++rank) {
      all = all && (processes_[rank] <= 0 || ends_[rank] || static_cast<int64_t>(rank) == but);
    }
    if (all || SecondsSince(start) > most_s) return all;
    std::this_thread::sleep_for(kLookAgain);
  }
}

std::optional<std::chrono::steady_clock::time_point> RankProcesses::LeftAt(int64_t rank) const {
  if (!std::filesystem::exists(LeftPath(rank))) return std::nullopt;
  return std::chrono::steady_clock::time_point(
      std::chrono::steady_clock::duration(std::stoll(ReadFile(LeftPath(rank)))));
}

double RankProcesses::LeftAfter_s(int64_t rank) const {
  const auto left = LeftAt(rank);
  return left ? std::chrono::duration<double>(*left - start_).count() : 0;
}

std::string RankProcesses::ReportOf(int64_t rank) const {
  const std::string path = folder_.path("rank-" + std::to_string(rank));
  return std::filesystem::exists(path) ? ReadFile(path) : "";
}

std::string RankProcesses::Reports() const {
  std::string reports;
  for (size_t rank = 0; rank < processes_.size(); ++rank) {
    reports += "rank " + std::to_string(rank) + ": " + ReportOf(static_cast<int64_t>(rank)) + "\n";
  }
  return reports;
}

std::unique_ptr<RankProcesses> OpenRankProcesses(const RankProcessOptions& options, const RankBody& body) {
  std::string reports;
  for (int opening = 0; opening < kMostOpenings; ++opening) {
    auto processes = std::make_unique<RankProcesses>(options, body);
    if (processes->AwaitReady()) return processes;
    reports = processes->Reports();
  }
  throw std::runtime_error("no world opens:\n" + reports);
}

}  // namespace trainwright::test
