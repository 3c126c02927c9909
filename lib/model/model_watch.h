/// Whether the files of a model are still those that were opened first: they are read more than once, for
/// their hashes and for what they hold.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lib/io/file_state.h"

namespace trainwright {

/// To be made before a folder's first file is read. A value; thread-safe but for assignment.
class ModelWatch {
 public:
  /// \param folder of a model, of an adapter, or a checkpoint
  /// \throws Error{kIo}
  explicit ModelWatch(const std::string& folder);
  /// To be called after the last read.
  /// \throws Error{kBadInput} naming a file that was written to or replaced; Error{kIo} when one is gone
  void ThrowIfChanged() const;

 private:
  std::vector<std::pair<std::string, FileState>> files_;
};

}  // namespace trainwright
