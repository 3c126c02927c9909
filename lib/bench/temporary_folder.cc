#include "lib/bench/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "lib/base/error.h"

namespace trainwright {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "bench-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw SystemError(pattern, "make a folder", errno);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace trainwright
