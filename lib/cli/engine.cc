#include "lib/cli/engine.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "lib/base/error.h"
#include "lib/base/log.h"

namespace trainwright {

namespace fs = std::filesystem;

bool AsksAboutCommandLine(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") return false;
    if (argument == "-h" || argument == "--help" || argument == "--version" || argument == "--print-config" ||
        argument == "--list-presets") {
      return true;
    }
  }
  return false;
}

std::string EnginePath(const std::string& program) {
  const fs::path path = program;
  return (path.parent_path().parent_path() / "libexec" / "trainwright" /
          (path.filename().string() + "-engine"))
      .string();
}

int BecomeEngine(const std::string& tool, char** argv) {
  std::error_code unknown;
  const std::string engine = EnginePath(fs::read_symlink("/proc/self/exe", unknown).string());
  execv(engine.c_str(), argv);
  const Error error =
      SystemError(engine, "start", errno, "the tool is there in part only: build or install it again");
  ConfigureLog(tool, LogLevel::kInfo);
  LogError(error.what());
  LogHint(error.hint());
  return static_cast<int>(error.code());
}

}  // namespace trainwright
