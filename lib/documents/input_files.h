/// The files that a command line means: folders, patterns, lists and plain names.
#pragma once

#include <string>
#include <vector>

namespace trainwright {

struct InputFilesOptions {
  /// Files and folders, and patterns with * ? [ ] and ** for the tool itself to expand. A name that exists is
  /// never taken for a pattern. "-" is standard input.
  std::vector<std::string> arguments;
  /// A file with one name a line, or between zero bytes; "-" is standard input; empty: none. Its names come
  /// after the arguments and are no patterns.
  std::string list;
  /// Of folders, whether every file counts, or only those whose name implies a known format and is not
  /// README.md or another that datasets does not take for data.
  bool every_file = false;
};

/// The names in order: of a folder or pattern, in byte order of the paths. Folders are walked to any depth;
/// symbolic links are followed, but for those that lead back to a folder above. Names that begin with a dot
/// are skipped in folders and patterns.
/// \throws Error{kUsage} for a folder, pattern or list that gives no file; Error{kIo} for what cannot be
///     opened
std::vector<std::string> ExpandInputs(const InputFilesOptions& options);

}  // namespace trainwright
