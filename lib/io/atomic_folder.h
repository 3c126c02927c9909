/// A folder that appears whole or not at all.
#pragma once

#include <memory>
#include <string>

#include "lib/io/temporary_file.h"

namespace trainwright {

/// A folder under the temporary name that a LockedTemporary has for it beside its final one; Commit() syncs
/// and renames it, so that a crash at any moment leaves the old folder or the new one. Without Commit() it
/// vanishes. A name that is a link to a folder is that folder's, as with files.
///
/// Where the file system cannot exchange two folders, as network file systems cannot, the old one makes way
/// before the new one has its place: a crash just then leaves it under a hidden name, and the next
/// AtomicFolder of the same name gives it its own back.
class AtomicFolder {
 public:
  /// Removes what dead writers left of the same name.
  /// \param replace whether Commit() may replace a folder
  /// \throws Error{kUsage} when the name is taken, Error{kIo}; as FollowOutputLink
  AtomicFolder(const std::string& path, bool replace);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  /// Where the files go; each is to be durable before Commit().
  const std::string& temporary() const { return temporary_; }
  /// Warns of a replaced folder that cannot be deleted.
  /// \throws Error{kIo, kUsage}
  void Commit();

 private:
  /// \returns where the folder that was replaced is now; empty: there was none
  std::string PutInPlace();

  std::string path_;
  bool replace_;
  std::unique_ptr<LockedTemporary> lock_;
  std::string temporary_;  // empty after the commit
};

/// A path without the slashes at its end.
std::string WithoutLastSlash(std::string path);

}  // namespace trainwright
