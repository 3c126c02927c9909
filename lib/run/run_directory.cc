#include "lib/run/run_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/io/byte_sink.h"
#include "lib/io/temporary_file.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

constexpr char kStepPrefix[] = "step-", kCheckpointsFolder[] = "checkpoints";
constexpr char kLatest[] = "latest", kBest[] = "best";
/// What a hidden folder ends with: one that is being written, one that makes way for another of its step, and
/// one that goes for good. Who holds the lock of the run is alone, so that the names need no more.
constexpr char kNewMark[] = ".new", kReplacedMark[] = ".replaced", kDeletedMark[] = ".deleted";

std::string StepName(int64_t step) {
  char name[32];
  std::snprintf(name, sizeof(name), "%s%08lld", kStepPrefix, static_cast<long long>(step));
  return name;
}

/// What a link of the run points to.
std::string LinkTarget(int64_t step) {
  return std::string(kCheckpointsFolder) + "/" + StepName(step);
}

/// The step of "step-00000100"; nullopt for other names.
std::optional<int64_t> StepOf(const std::string& name) {
  const size_t prefix = sizeof(kStepPrefix) - 1;
  if (name.compare(0, prefix, kStepPrefix) != 0 || name.size() < prefix + 8 || name.size() > prefix + 18)
    return {};
  if (name.find_first_not_of("0123456789", prefix) != std::string::npos) return {};
  return std::stoll(name.substr(prefix));
}

/// Creates a folder and its parents.
/// \throws Error{kIo}
void MakeFolders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw SystemError(path, "create the folder", error.value(), "choose another place with --out");
}

void RemoveTree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) throw SystemError(path.string(), "delete", error.value());
}

void Rename(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) throw SystemError(to, "rename of " + from, errno);
}

/// A free name beside a folder that goes: what could not be deleted of a former one may have the first.
std::string NameOfDeleted(const fs::path& folder) {
  const std::string name = folder.filename().string();
  const std::string stem = (folder.parent_path() / (name.starts_with('.') ? name : "." + name)).string();
  std::string free = stem + kDeletedMark;
  std::error_code ignored;
  for (int number = 2; fs::exists(free, ignored); ++number) {
    free = stem + "." + std::to_string(number) + kDeletedMark;
  }
  return free;
}

}  // namespace

RunDirectory::RunDirectory(std::string path) : path_(std::move(path)) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  MakeFolders(checkpoints_path());
  lock_ = std::make_unique<FolderLock>(path_);
  RemoveStaleTemporaries(path_, [](const std::string&) { return true; });
  // The lock says that nobody else writes here, so every hidden folder and link is a dead process's.
  for (const char* link : {kLatest, kBest}) unlink(NewLink(link).c_str());
  RemoveOldTemporaries(path_, [](const std::string& name) { return name == kLatest || name == kBest; });
  std::vector<std::string> hidden;
  for (const auto& entry : fs::directory_iterator(checkpoints_path())) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(std::string(".") + kStepPrefix)) hidden.push_back(name);
  }
  for (const std::string& name : hidden) {
    const std::string path = checkpoints_path() + "/" + name;
    const std::string replaced_path =
        checkpoints_path() + "/" + name.substr(1, name.size() - 1 - (sizeof(kReplacedMark) - 1));
    if (name.ends_with(kReplacedMark) && !fs::exists(replaced_path)) {
      Rename(path, replaced_path);  // its successor did not arrive
    } else {
      Discard(path);
    }
  }
}

RunDirectory RunDirectory::CreateNumbered(const std::string& parent, const std::string& stem) {
  MakeFolders(parent);
  for (int number = 1;; ++number) {
    char suffix[16];
    std::snprintf(suffix, sizeof(suffix), "-%03d", number);
    const std::string path = parent + "/" + stem + suffix;
    if (mkdir(path.c_str(), 0777) == 0) return RunDirectory(path);
    if (errno != EEXIST)
      throw SystemError(path, "create the folder", errno, "choose another place with --out");
  }
}

std::optional<std::string> RunDirectory::Newest(const std::string& parent) {
  std::optional<std::string> newest;
  fs::file_time_type newest_time;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    const auto time = fs::last_write_time(entry.path() / kRunMetricsFile, ignored);
    if (ignored) continue;
    if (!newest || time > newest_time || (time == newest_time && entry.path().string() > *newest)) {
      newest = entry.path().string();
      newest_time = time;
    }
  }
  return newest;
}

std::string RunDirectory::CheckpointPath(int64_t step) const {
  return CheckpointPathIn(path_, step);
}

std::vector<int64_t> RunDirectory::CheckpointSteps() const {
  return CheckpointStepsIn(path_);
}

bool HoldsRun(const std::string& run) {
  std::error_code ignored;
  return fs::exists(run + "/" + kRunRecordFile, ignored) || !RunDirectory::CheckpointStepsIn(run).empty();
}

std::optional<std::string> RunOfCheckpoint(const std::string& path) {
  std::error_code ignored;
  const fs::path folder = fs::canonical(path, ignored);  // empty where there is none
  const fs::path checkpoints = folder.parent_path();
  const bool is_of_run = checkpoints.filename() == kCheckpointsFolder && StepOf(folder.filename().string());
  return is_of_run ? std::optional(checkpoints.parent_path().string()) : std::nullopt;
}

std::string RunDirectory::CheckpointPathIn(const std::string& run, int64_t step) {
  return run + "/" + LinkTarget(step);
}

std::optional<int64_t> RunDirectory::StepOfCheckpoint(const std::string& path) {
  return StepOf(fs::path(path).filename().string());
}

std::vector<int64_t> RunDirectory::CheckpointStepsIn(const std::string& run) {
  std::vector<int64_t> steps;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run + "/" + kCheckpointsFolder, ignored)) {
    if (const auto step = StepOf(entry.path().filename().string())) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<std::string> RunDirectory::CheckpointsIn(const std::string& run_path) {
  std::vector<std::string> paths;
  for (const int64_t step : CheckpointStepsIn(run_path)) paths.push_back(CheckpointPathIn(run_path, step));
  return paths;
}

std::string RunDirectory::BeginCheckpoint(int64_t step) {
  AbandonCheckpoint();
  const std::string folder = checkpoints_path() + "/." + StepName(step) + kNewMark;
  if (mkdir(folder.c_str(), 0777) != 0) throw SystemError(folder, "create the folder", errno);
  begun_ = folder;
  return folder;
}

void RunDirectory::CommitCheckpoint(int64_t step) {
  SyncFolder(begun_);
  const std::string final_path = CheckpointPath(step);
  const std::string replaced = checkpoints_path() + "/." + StepName(step) + kReplacedMark;
  struct stat status;
  const bool exists = lstat(final_path.c_str(), &status) == 0;
  if (exists) Rename(final_path, replaced);
  try {
    Rename(begun_, final_path);
  } catch (const Error&) {
    if (exists) Rename(replaced, final_path);
    throw;
  }
  begun_.clear();
  try {
    SyncFolder(checkpoints_path());
    Point(kLatest, step);
  } catch (const Error& error) {
    throw Error(ErrorCode::kIo, final_path,
                "is in place but may not survive a power loss: " + error.object() + ": " + error.problem());
  }
  if (exists) Discard(replaced);
}

void RunDirectory::AbandonCheckpoint() noexcept {
  if (begun_.empty()) return;
  std::error_code ignored;
  fs::remove_all(begun_, ignored);
  begun_.clear();
}

void RunDirectory::RotateCheckpoints(int64_t keep, int64_t newest_step, const std::set<int64_t>& spared) {
  for (const std::string& path : std::set<std::string>(undeleted_)) Discard(path);
  if (keep <= 0) return;
  std::vector<int64_t> steps = CheckpointSteps();
  std::erase_if(steps, [&](int64_t step) { return step > newest_step; });
  for (int64_t i = 0; i + keep < static_cast<int64_t>(steps.size()); ++i) {
    const int64_t step = steps[static_cast<size_t>(i)];
    if (!spared.contains(step)) DeleteCheckpoint(step);
  }
}

void RunDirectory::DeleteCheckpoint(int64_t step) {
  Discard(CheckpointPath(step));
}

void RunDirectory::Discard(const std::string& path) {
  // Files that a reader of NFS has open keep their folder, say: no reason to end a run.
  const auto warn_once = [](const Error& error, const std::string& folder, std::set<std::string>* known) {
    if (!known->insert(folder).second) return;
    LogWarning(std::string(error.what()) +
               "; it takes room until a later save, or the next process, can delete it");
  };
  std::string doomed = path;
  if (!path.ends_with(kDeletedMark)) {
    // A folder loses its name before its files, so that no half-deleted checkpoint is ever seen.
    doomed = NameOfDeleted(path);
    try {
      Rename(path, doomed);
    } catch (const Error& error) {
      return warn_once(error, path, &unmoved_);
    }
    unmoved_.erase(path);
  }
  try {
    RemoveTree(doomed);
    undeleted_.erase(doomed);
  } catch (const Error& error) {
    warn_once(error, doomed, &undeleted_);
  }
}

void RunDirectory::PointLatestAt(int64_t step) {
  std::error_code ignored;
  if (fs::read_symlink(path_ + "/" + kLatest, ignored) == LinkTarget(step)) return;
  Point(kLatest, step);
}

void RunDirectory::PointBestAt(std::optional<int64_t> step) {
  if (step) {
    Point(kBest, *step);
  } else if (const std::string best = path_ + "/" + kBest; unlink(best.c_str()) != 0 && errno != ENOENT) {
    throw SystemError(best, "delete", errno);
  }
}

std::string RunDirectory::NewLink(const std::string& link) const {
  return path_ + "/." + link + kNewMark;
}

void RunDirectory::Point(const std::string& link, int64_t step) {
  const std::string temporary = NewLink(link);
  unlink(temporary.c_str());
  if (symlink(LinkTarget(step).c_str(), temporary.c_str()) != 0) {
    throw SystemError(temporary, "create the link", errno);
  }
  const std::string path = path_ + "/" + link;
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int saved = errno;
    unlink(temporary.c_str());
    if (saved != EISDIR) throw SystemError(path, "rename of " + temporary, saved);
    throw Error(ErrorCode::kIo, path,
                "is a folder, where a run has a link to a checkpoint: a copy that followed links has one", "",
                "remove " + path + ": the checkpoints are in " + checkpoints_path());
  }
  SyncFolder(path_);
}

}  // namespace trainwright
