/// A machine's /proc and /sys, as files.
#pragma once

#include <filesystem>
#include <string>

#include "tests/support/support.h"

namespace trainwright::test {

class FakeMachine {
 public:
  void Write(const std::string& path, const std::string& content) {
    const std::filesystem::path file = folder_.path(path);
    std::filesystem::create_directories(file.parent_path());
    WriteFile(file.string(), content);
  }
  std::string root() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace trainwright::test
