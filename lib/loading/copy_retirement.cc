#include "lib/loading/copy_retirement.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/io/descriptor.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = "trainwright-", kSuffix[] = ".tws";
constexpr size_t kDigits = 16;

struct Copy {
  std::string path;
  fs::file_time_type used;
  uint64_t bytes = 0;
};

/// In the order of their last use.
std::vector<Copy> CopiesIn(const std::string& folder) {
  std::vector<Copy> copies;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    std::error_code gone;
    if (!IsCopyName(entry->path().filename()) || !entry->is_regular_file(gone)) continue;
    const Copy copy{entry->path(), entry->last_write_time(gone), entry->file_size(gone)};
    if (!gone) copies.push_back(copy);
  }
  std::sort(copies.begin(), copies.end(), [](const Copy& one, const Copy& other) {
    return one.used != other.used ? one.used < other.used : one.path < other.path;
  });
  return copies;
}

/// \returns whether it is gone: not where a process keeps it, or where nobody can say whether one does
bool RemoveUnused(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool is_removed = TryToLock(fd) == LockOutcome::kTaken && unlink(path.c_str()) == 0;
  close(fd);
  return is_removed;
}

}  // namespace

std::string CopyName(const std::string& content_sha256) {
  return kPrefix + content_sha256.substr(0, kDigits) + kSuffix;
}

bool IsCopyName(const std::string& name) {
  constexpr size_t kBegin = sizeof(kPrefix) - 1;
  return name.size() == kBegin + kDigits + sizeof(kSuffix) - 1 && name.starts_with(kPrefix) &&
         name.ends_with(kSuffix) && name.find_first_not_of("0123456789abcdef", kBegin) == kBegin + kDigits;
}

void KeepInUse(const std::string& copy) {
  // Never closed: a set is read as long as its process trains.
  const int fd = open(copy.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  flock(fd, LOCK_SH | LOCK_NB);
  futimens(fd, nullptr);
}

void RetireCopies(const std::string& folder, uint64_t bytes, uint64_t available) {
  const fs::file_time_type forgotten = fs::file_time_type::clock::now() - kForgottenAfter;
  for (const Copy& copy : CopiesIn(folder)) {
    const bool is_forgotten = copy.used < forgotten;
    if (!is_forgotten && bytes <= available) return;
    if (!RemoveUnused(copy.path)) continue;
    available += copy.bytes;
    LogInfo(
        "removed " + copy.path + ", a copy of " + FormatBytes(copy.bytes) + " of shards that " +
        (is_forgotten ? "no run has read for 30 days" : "was unused the longest, to have room for another"));
  }
}

}  // namespace trainwright
