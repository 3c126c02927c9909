/// Whether somebody holds the FolderLock of a folder (lib/io/byte_sink.h).
#pragma once

#include <string>

namespace trainwright {

/// The file in the folder that is locked.
inline constexpr char kFolderLockFile[] = ".lock";

/// Makes and changes nothing, and keeps nobody from taking the lock. Thread-safe.
/// \returns false where it cannot be told: the file is missing or may not be read
bool IsFolderInUse(const std::string& folder);

}  // namespace trainwright
