#include "lib/io/output_link.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "lib/base/error.h"
#include "lib/io/byte_sink.h"

namespace trainwright {

namespace fs = std::filesystem;

namespace {

constexpr int kMostLinks = 40;  // as the kernel

}  // namespace

bool MayFollowLink(const struct stat& link, const struct stat& folder, uid_t user) {
  const bool is_shared = (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & S_IWOTH) != 0;
  return !is_shared || link.st_uid == user || link.st_uid == folder.st_uid;
}

std::string FollowOutputLink(const std::string& path) {
  fs::path at = path;
  for (int links = 0; links <= kMostLinks; ++links) {
    struct stat link, folder;
    if (lstat(at.c_str(), &link) != 0) return path;
    if (!S_ISLNK(link.st_mode)) return at.string();
    if (stat(FolderOf(at.string()).c_str(), &folder) != 0) return path;
    if (!MayFollowLink(link, folder, geteuid())) {
      throw Error(ErrorCode::kIo, path, "is a link of another user in a folder that everyone may write", "",
                  "remove the link, or write elsewhere");
    }
    std::error_code error;
    const fs::path target = fs::read_symlink(at, error);
    if (error) return path;
    at = at.parent_path() / target;  // which is the target where that is absolute
  }
  return path;
}

bool IsStandardOutput(const std::string& path) {
  if (path == "-") return true;
  fs::path at = path;
  for (int links = 0; links <= kMostLinks; ++links) {
    const fs::path plain = at.lexically_normal();
    if (plain == "/dev/stdout" || plain == "/dev/fd/1" || plain == "/proc/self/fd/1") return true;
    std::error_code error;
    const fs::path target = fs::read_symlink(at, error);
    if (error) return false;
    at = at.parent_path() / target;
  }
  return false;
}

}  // namespace trainwright
