#include "lib/cli/engine.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "lib/base/error.h"
#include "lib/base/log.h"

namespace trainwright {

namespace fs = std::filesystem;

namespace {

/// libgomp's threads spin for milliseconds before they sleep; next to other work that takes the very cores
/// that the awaited thread needs (measured on two busy cores: four times the time). 1000 turns are some 15
/// microseconds.
void SetEngineEnvironment() {
  setenv("MKL_CBWR", "AUTO,STRICT", /*overwrite=*/0);
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "1000", /*overwrite=*/0);
}

}  // namespace

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
  SetEngineEnvironment();
  execv(engine.c_str(), argv);
  const Error error =
      SystemError(engine, "start", errno, "the tool is there in part only: build or install it again");
  ConfigureLog(tool, LogLevel::kInfo);
  LogError(error.what());
  LogHint(error.hint());
  return static_cast<int>(error.code());
}

}  // namespace trainwright
