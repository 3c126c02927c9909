#include "lib/cli/engine.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
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

/// Whether the engine's libraries find no room below `ulimit -v` or `ulimit -d`. They are mapped before the
/// engine has a say, so a child that does nothing else maps them first.
bool LacksRoom(const std::string& engine, char** argv) {
  const auto is_limited = [](int resource) {
    rlimit limit = {};
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  };
  if (!is_limited(RLIMIT_AS) && !is_limited(RLIMIT_DATA)) return false;
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    setenv("LD_TRACE_LOADED_OBJECTS", "1", /*overwrite=*/1);
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    execv(engine.c_str(), argv);
    _exit(0);  // what is wrong is told when the tool becomes the engine
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

int Tell(const std::string& tool, const Error& error) {
  ConfigureLog(tool, LogLevel::kInfo);
  LogError(error.what());
  LogHint(error.hint());
  return static_cast<int>(error.code());
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
  if (LacksRoom(engine, argv)) {
    return Tell(tool, Error(ErrorCode::kIo, "memory", "has no room for the tool's libraries", "",
                            "raise ulimit -v and ulimit -d"));
  }
  execv(engine.c_str(), argv);
  return Tell(
      tool, SystemError(engine, "start", errno, "the tool is there in part only: build or install it again"));
}

}  // namespace trainwright
