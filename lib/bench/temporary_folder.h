/// A folder for what one run or one set of runs writes.
#pragma once

#include <string>

namespace trainwright {

/// Made where temporary files go (TMPDIR), deleted with all that is in it at the end of its life.
class TemporaryFolder {
 public:
  /// \throws Error{kIo}; Error{kUsage} where TMPDIR is no plain word of a shell
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace trainwright
