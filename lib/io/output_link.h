/// Symbolic links that an output is named by.
///
/// An output replaces its file by renaming another one over it, so that its link is followed by the program
/// and not by the kernel, which in a folder that everyone may write (/tmp) would not follow the link of
/// someone else (proc_sys_fs(5), protected_symlinks). The same rule holds here, whatever the kernel's
/// setting.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>

namespace trainwright {

/// Whether a process of this user follows a link: not where the link is in a sticky folder that everyone may
/// write, and belongs neither to the user nor to whom the folder belongs.
/// \param link, folder as lstat and stat have them
bool MayFollowLink(const struct stat& link, const struct stat& folder, uid_t user);

/// \returns the file that an output of this name is to replace, no link when it was looked at: where the
///     links that begin with the name end; the name itself where it is no link, or its link leads to nothing
/// \throws Error{kIo} on a link that may not be followed
std::string FollowOutputLink(const std::string& path);

/// The descriptor of this process that a name, or a link by that name, is: /dev/stdout, /dev/stderr, and what
/// /dev/fd and /proc/self/fd have. They lead on to the file that the descriptor was redirected to, which must
/// not be replaced by another.
std::optional<int> OutputDescriptor(const std::string& path);

/// Whether an output of this name goes to standard output: "-", and the names of its descriptor.
bool IsStandardOutput(const std::string& path);

}  // namespace trainwright
