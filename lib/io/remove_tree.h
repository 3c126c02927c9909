/// Deleting folders of one's own.
#pragma once

#include <string>
#include <system_error>

namespace trainwright {

/// Deletes a file, or a folder with what it holds, also where folders in it are read-only and the process may
/// change that. What is not there is no error.
/// \returns why some of it is left
std::error_code RemoveOwnTree(const std::string& path);

}  // namespace trainwright
