#include "lib/io/remove_tree.h"

#include <filesystem>

namespace trainwright {
namespace {

namespace fs = std::filesystem;

/// Lets the owner empty a folder and those below it.
void AllowEmptying(const fs::path& folder) {
  std::error_code ignored;
  fs::permissions(folder, fs::perms::owner_all, fs::perm_options::add, ignored);
  for (fs::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
    std::error_code unknown;
    if (fs::is_directory(entry->symlink_status(unknown))) AllowEmptying(entry->path());
  }
}

}  // namespace

std::error_code RemoveOwnTree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  std::error_code unknown;
  if (error != std::errc::permission_denied || !fs::is_directory(fs::symlink_status(path, unknown)))
    return error;
  AllowEmptying(path);
  fs::remove_all(path, error);
  return error;
}

}  // namespace trainwright
