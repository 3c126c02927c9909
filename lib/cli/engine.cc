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
#include "lib/io/command.h"

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

/// A library that the loader does not find for the engine; empty: none. It would end the process by itself,
/// with a message of its own and a status that no tool has.
std::string LibraryNotFound(const std::string& engine) {
  CommandOptions options;
  options.timeout_s = 60;
  options.keep_output = true;
  options.arguments = {engine};
  std::string found;
  try {
    found = RunCommand("LD_TRACE_LOADED_OBJECTS=1 \"$1\"", options).output;
  } catch (const Error&) {
    return "";  // the loader says what is wrong
  }
  const size_t end = found.find(" => not found");
  if (end == std::string::npos) return "";
  const size_t begin = found.find_last_of("\t\n", end) + 1;  // 0 where there is neither
  return found.substr(begin, end - begin);
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

int BecomeEngine(const std::string& tool, std::string_view torch_folder, char** argv) {
  std::error_code unknown;
  const std::string engine = EnginePath(fs::read_symlink("/proc/self/exe", unknown).string());
  SetEngineEnvironment();
  if (LacksRoom(engine, argv)) {
    return Tell(tool, Error(ErrorCode::kIo, "memory", "has no room for the tool's libraries", "",
                            "raise ulimit -v and ulimit -d"));
  }
  if (access((std::string(torch_folder) + "/libtorch_cpu.so").c_str(), R_OK) != 0) {
    if (const std::string library = LibraryNotFound(engine); !library.empty()) {
      return Tell(
          tool, Error(ErrorCode::kIo, engine,
                      "needs " + library + ", which is not in " + std::string(torch_folder), "",
                      "LibTorch is missing or not readable there: run scripts/fetch_libtorch.sh, or name the "
                      "folder of another copy in LD_LIBRARY_PATH; for several users, build with "
                      "TRAINWRIGHT_TORCH_DIR in a folder that all can read"));
    }
  }
  execv(engine.c_str(), argv);
  return Tell(
      tool, SystemError(engine, "start", errno, "the tool is there in part only: build or install it again"));
}

}  // namespace trainwright
