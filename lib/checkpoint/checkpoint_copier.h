/// Copies of committed checkpoints at a second place, made while training goes on: in a folder, or by a
/// command.
///
/// A copy in a folder appears whole or not at all, after every file of it was read back and has the SHA-256
/// that the checkpoint's metadata.json reports. Nothing here stops training: a copy that fails is tried
/// again, then reported; when more checkpoints wait than the queue holds, the oldest gives way and is
/// reported, too. Both get another chance in Finish. Thread-safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace trainwright {

struct CopySettings {
  std::string folder;  ///< of the copies, step-NNNNNNNN each; or empty
  /// Run by /bin/sh with the checkpoint's path in TRAINWRIGHT_CHECKPOINT and, unless it names that variable,
  /// as the last argument; or empty. The path is no part of the script.
  std::string command;
  bool compress = false;    ///< as ckpt-compress does, into step-NNNNNNNN.twc; for a folder
  int retries = 2;          ///< after the first attempt
  double first_wait_s = 1;  ///< before the first of them; each doubles it
  double timeout_s = 3600;  ///< of the command
  size_t capacity = 4;      ///< checkpoints that may wait
  std::string writer;       ///< tool and version
};

/// What became of one checkpoint.
struct CopyResult {
  int64_t step = 0;
  std::string place;  ///< path of the copy, or the command
  bool copied = false;
  int attempts = 0;
  double copy_time_s = 0;
  uint64_t size_bytes = 0;  ///< of the copy; 0 of a command
  std::string problem;      ///< why not
};

/// Makes one copy, in one attempt; one that is there already and whole is left.
/// \param abandoned where it becomes true, the copy ends soon: its command is killed, its folder is removed
/// \returns its size
/// \throws Error{kIo, kBadInput}; Error{kUsage} when the folder holds another run's checkpoint of the step
uint64_t CopyCheckpoint(const std::string& checkpoint, const CopySettings& settings,
                        const std::atomic<bool>* abandoned = nullptr);

/// The copies in a folder, plain and compressed, newest first; none where there is no such folder.
struct StoredCopy {
  int64_t step = 0;
  std::string path;
};
std::vector<StoredCopy> CopiesIn(const std::string& folder);

/// Writes what a copy was made of into an empty folder, each file durable; nothing is compared with its hash.
/// \throws Error{kBadInput} on a copy that is damaged; Error{kIo}
void RestoreCopy(const std::string& copy, const std::string& folder);

class CheckpointCopier {
 public:
  explicit CheckpointCopier(CopySettings settings);
  /// Waits for the copy under way, also where it is abandoned; leaves out those that wait.
  ~CheckpointCopier();

  /// Queues a checkpoint; never waits.
  void Add(int64_t step, const std::string& path);
  /// The checkpoint has its copy already.
  void AddCopied(int64_t step);
  bool copies_into_folder() const { return !settings_.folder.empty(); }
  /// Where a checkpoint's copy is, or the command that makes it.
  std::string PlaceOf(const std::string& checkpoint) const;
  /// What ended since the last call.
  std::vector<CopyResult> TakeResults();
  /// What TakeResults gave has its records.
  void MarkRecorded();
  /// Waits until all that is queued was tried, and tries once more what is missing and still there.
  /// \param look called a few times a second meanwhile; what it throws ends the wait and abandons the rest
  void Finish(const std::function<void()>& look = {});
  /// Ends the copy under way soon, and leaves out those that wait: they stay missing, and so does what is
  /// added from here on. Returns at once.
  void Abandon();

  /// Steps that wait or are being copied: they must not be deleted.
  std::set<int64_t> pinned() const;
  /// Steps whose copy was made and is not recorded: deleted, they would leave no trace if this process were
  /// killed now.
  std::set<int64_t> unrecorded() const;
  std::set<int64_t> copied() const;
  /// Steps that were added and have no copy, those that wait included.
  std::set<int64_t> missing() const;
  int64_t gave_way() const;  ///< how often the queue was full

 private:
  struct Entry {
    int64_t step = 0;
    std::string path;
  };
  void Run();
  CopyResult Copy(const Entry& entry);
  /// Waits until nothing waits or runs.
  void AwaitIdle(const std::function<void()>& look, std::unique_lock<std::mutex>* lock);

  const CopySettings settings_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> waiting_;
  std::set<int64_t> running_;               // at most one
  std::map<int64_t, std::string> missing_;  // with their paths
  std::set<int64_t> copied_;
  std::vector<CopyResult> results_;
  std::set<int64_t> unrecorded_;
  int64_t gave_way_ = 0;
  bool closing_ = false;
  std::atomic<bool> abandoned_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace trainwright
