#include "lib/bench/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "lib/base/error.h"
#include "lib/base/shell_word.h"
#include "lib/base/temporary_place.h"

namespace trainwright {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
  const std::string parent = PlaceForTemporaryFiles("/tmp");
  // Its name stands in lines of shell, within quotes of theirs or without.
  if (!IsPlainWord(parent)) {
    throw Error(ErrorCode::kUsage, "TMPDIR", "is " + ShellWord(parent) + ", which a shell reads otherwise",
                "", "a folder without blanks and other special characters in its name serves");
  }
  std::string pattern = parent + "/bench-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) {
    throw SystemError(parent, "make a folder for temporary files in it", errno,
                      "TMPDIR names another folder");
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace trainwright
