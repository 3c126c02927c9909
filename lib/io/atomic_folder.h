/// A folder that appears whole or not at all.
#pragma once

#include <memory>
#include <string>

#include "lib/io/temporary_file.h"

namespace trainwright {

/// A folder under the temporary name that a LockedTemporary has for it beside its final one; Commit() syncs
/// and renames it, so that a crash at any moment leaves the old folder or the new one. Without Commit() it
/// vanishes.
class AtomicFolder {
 public:
  /// Removes what dead writers left of the same name.
  /// \param replace whether Commit() may replace a folder
  /// \throws Error{kUsage} when the name is taken, Error{kIo}
  AtomicFolder(const std::string& path, bool replace);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  /// Where the files go; each is to be durable before Commit().
  const std::string& temporary() const { return temporary_; }
  /// \throws Error{kIo, kUsage}
  void Commit();

 private:
  std::string path_;
  bool replace_;
  std::unique_ptr<LockedTemporary> lock_;
  std::string temporary_;  // empty after the commit
};

/// A path without the slashes at its end.
std::string WithoutLastSlash(std::string path);

}  // namespace trainwright
