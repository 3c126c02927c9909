/// Ranks of a world as processes of their own, forked from the test: LibTorch is loaded once.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/dist/c10d_world.h"
#include "lib/launch/rank_place.h"
#include "tests/support/support.h"

namespace trainwright::test {

/// What a rank's process has of the test.
class RankTalk {
 public:
  RankTalk(int ready_fd, int go_fd, std::string report_path)
      : ready_fd_(ready_fd), go_fd_(go_fd), report_path_(std::move(report_path)) {}
  /// Tells the test that this rank has come so far.
  void Ready() const;
  /// Waits until the test lets one rank go on.
  void AwaitGo() const;
  void Report(const std::string& text) const;

 private:
  const int ready_fd_, go_fd_;
  const std::string report_path_;
};

/// What a rank does in its open world. An Error that it throws ends the process as it would end a tool's.
using RankBody = std::function<void(C10dWorld*, const RankTalk&)>;

struct RankProcessOptions {
  int64_t ranks = 2;
  double timeout_s = 3;
  std::vector<int64_t> started;       ///< all where it is empty
  bool hand_over_listen_fd = true;    ///< else rank 0 opens the port itself
  std::optional<RankPlace> prepared;  ///< of which each rank takes all but its number
};

class RankProcesses {
 public:
  struct End {
    int status = 0;     ///< 128 + n when signal n ended it
    double time_s = 0;  ///< since Go, or the start where there was none
  };

  RankProcesses(const RankProcessOptions& options, const RankBody& body);
  /// Kills what is left.
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  /// Waits until all ranks have said that they are ready.
  /// \returns false where one ended before
  bool AwaitReady();
  void Go();
  void Signal(int64_t rank, int signal) const;
  /// Takes note of the ranks that have ended.
  void Look();
  /// Waits until all but some ranks have ended.
  /// \returns whether they did within the time
  bool Await(double most_s, int64_t but = -1);
  std::optional<End> EndOf(int64_t rank) const { return ends_[rank]; }
  std::string ReportOf(int64_t rank) const;
  std::string Reports() const;  ///< of all ranks, a line each
  /// When a rank had left its world: what its process takes to end after that, a loaded machine decides.
  /// \returns nothing where it was ended otherwise
  std::optional<std::chrono::steady_clock::time_point> LeftAt(int64_t rank) const;
  /// The same in seconds since Go, or the start where there was none; 0 where it was ended otherwise.
  double LeftAfter_s(int64_t rank) const;

 private:
  std::string LeftPath(int64_t rank) const { return folder_.path("left-" + std::to_string(rank)); }
  /// noexcept: a rank that throws past its end would go on as a second run of all tests.
  [[noreturn]] void BeRank(RankPlace place, double timeout_s, const RankBody& body, int listen_fd) noexcept;

  TemporaryFolder folder_;
  int ready_[2], go_[2];
  std::chrono::steady_clock::time_point start_;
  std::vector<pid_t> processes_;  ///< 0: not started
  std::vector<std::optional<End>> ends_;
};

/// Starts ranks that say they are ready until all of a world do: a loaded machine opens some only when they
/// try again.
std::unique_ptr<RankProcesses> OpenRankProcesses(const RankProcessOptions& options, const RankBody& body);

/// A socket that listens on 127.0.0.1, and its port.
std::pair<int, int> ListenOnLoopback();

}  // namespace trainwright::test
