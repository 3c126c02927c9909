/// The file that a command writes its numbers to, which may be there from earlier.
#pragma once

#include <optional>
#include <string>

#include "lib/base/checksum.h"
#include "lib/io/file_state.h"

namespace trainwright {

class MetricFile {
 public:
  /// Before the run. Waits some milliseconds where the file was written to just now, so that a write by the
  /// run shows.
  explicit MetricFile(std::string path);
  /// The text, after the run.
  /// \throws Error{kBadInput} where there is none or the run left it as it was, and where it begins with what
  ///     was there before: the numbers of earlier runs are not this one's
  std::string Read() const;

 private:
  std::string path_;
  std::optional<FileState> before_;  ///< nullopt: there was no regular file
  Sha256Digest content_before_ = {};
};

}  // namespace trainwright
