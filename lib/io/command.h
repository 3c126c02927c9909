/// One timed run of a command: what it cost, how it ended, what it wrote.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainwright {

/// What goes on of a command's process group when the command itself has ended: ended with this object, asked
/// to by SIGTERM and killed a second later. Its standard error stays open until then.
class LeftGroup {
 public:
  LeftGroup() = default;
  ~LeftGroup();
  LeftGroup(const LeftGroup&) = delete;
  LeftGroup& operator=(const LeftGroup&) = delete;
  /// \pre holds nothing yet
  /// \param group a process group whose leader has been waited for
  /// \param error_fd the end to read standard error from, this object's from now on
  /// \param reaps_orphans whether members that end are for this process to wait for
  void Hold(pid_t group, int error_fd, bool reaps_orphans);
  /// -1: none.
  int error_fd() const { return error_fd_; }

 private:
  pid_t group_ = -1;
  int error_fd_ = -1;
  bool reaps_orphans_ = false;
};

struct CommandOptions {
  bool shell = true;              ///< run by /bin/sh -c; else split at blanks and run directly
  double timeout_s = 3600;        ///< then its whole process group is killed
  bool keep_output = false;       ///< collect standard output, at most 256 MiB, instead of discarding it
  bool ends_with_signals = true;  ///< a signal that asks this process to stop ends the command, too
  /// Where it is set and becomes true, the whole process group is killed within a tenth of a second; it
  /// outlives the run.
  const std::atomic<bool>* abandoned = nullptr;
  /// What is killed dies with all that descends from it, in whatever session (descendants.h); meanwhile no
  /// other child of this process is begun or waited for.
  bool all_descendants = false;
  /// What is left of its process group when it has ended is ended, too, before the run is over: asked to by
  /// SIGTERM, and killed a second later.
  bool ends_group = false;
  /// Where it is set, what is left of its process group goes on as this object says.
  LeftGroup* leaves = nullptr;
  /// Where it is set, one that goes on meanwhile: what it writes to standard error is read and discarded.
  const LeftGroup* beside = nullptr;
  std::vector<std::string> arguments = {};    ///< with a shell: its $1, $2, ...
  std::vector<std::string> environment = {};  ///< "NAME=value", besides this process's own
  /// Called with each piece of standard output as it comes, whatever its length in all; empty: nothing is.
  std::function<void(std::string_view piece)> on_output = {};
};

/// Costs are those of the process and of all descendants that were waited for.
struct CommandRun {
  double wall_s = 0;
  double user_s = 0, system_s = 0;
  /// Resident, of the largest process; at least what this process had of its own (ResidentAnonymousBytes)
  /// when it began the command: Linux counts the copy.
  int64_t max_memory_bytes = 0;
  /// What system calls read and wrote, pipes and caches included; nullopt where the kernel does not report.
  std::optional<int64_t> read_bytes, written_bytes;
  int exit_status = 0;  ///< 128 + n when signal n ended it
  bool timed_out = false;
  std::string output;      ///< with keep_output
  std::string error_tail;  ///< the end of standard error, at most 4 KiB
  double cpu_s() const { return user_s + system_s; }
};

/// Runs a command with empty standard input and waits for it. Ends the command first when a signal asks this
/// process to stop, unless asked otherwise. Thread-safe.
/// \throws Error{kIo} when no process can be started, Error{kInterrupted or kTerminated} on a signal,
///     Error{kBadInput} on more output than is kept; what on_output throws
CommandRun RunCommand(const std::string& command, const CommandOptions& options);

}  // namespace trainwright
