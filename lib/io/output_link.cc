#include "lib/io/output_link.h"

#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "lib/base/error.h"
#include "lib/io/byte_sink.h"

namespace trainwright {

namespace fs = std::filesystem;

namespace {

constexpr int kMostLinks = 40;  // as the kernel

/// Of a name that is one of a descriptor's, all links of it left out.
std::optional<int> DescriptorNamed(const std::string& name) {
  if (name == "/dev/stdout") return STDOUT_FILENO;
  if (name == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!name.starts_with(folder)) continue;
    int descriptor = 0;
    const char *begin = name.data() + folder.size(), *end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(begin, end, descriptor);
    if (error == std::errc() && stop == end && descriptor >= 0) return descriptor;
  }
  return std::nullopt;
}

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

std::optional<int> OutputDescriptor(const std::string& path) {
  fs::path at = path;
  for (int links = 0; links <= kMostLinks; ++links) {
    if (const auto descriptor = DescriptorNamed(at.lexically_normal())) return descriptor;
    std::error_code error;
    const fs::path target = fs::read_symlink(at, error);
    if (error) return std::nullopt;
    at = at.parent_path() / target;
  }
  return std::nullopt;
}

bool IsStandardOutput(const std::string& path) {
  return path == "-" || OutputDescriptor(path) == STDOUT_FILENO;
}

}  // namespace trainwright
