#include "lib/base/log.h"

#include <unistd.h>

#include <mutex>
#include <utility>
#include <vector>

namespace trainwright {
namespace {

struct LogState {
  std::mutex mutex;
  std::string tool = "trainwright";
  LogLevel level = LogLevel::kInfo;
  bool speaks_for_all = true;
  LogListener* listener = nullptr;
  std::vector<std::string> held;
};

LogState& State() {
  static LogState state;
  return state;
}

/// \pre the state is locked
void WriteLine(const LogState& state, const char* word, const std::string& message) {
  const std::string line = state.tool + ": " + word + message + "\n";
  if (state.listener != nullptr) state.listener->BeforeLine();
  // A message that cannot be written has nowhere else to go.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  if (state.listener != nullptr) state.listener->AfterLine();
}

/// \pre the state is locked
void WriteHeld(LogState* state) {
  if (LogLevel::kInfo <= state->level) {
    for (const std::string& message : state->held) WriteLine(*state, "", message);
  }
  state->held.clear();
}

void Print(LogLevel level, const char* word, const std::string& message) {
  LogState& state = State();
  const std::lock_guard lock(state.mutex);
  if (level == LogLevel::kError) state.held.clear();
  if (level > state.level) return;
  WriteHeld(&state);
  WriteLine(state, word, message);
}

}  // namespace

void ConfigureLog(std::string tool, LogLevel level) {
  LogState& state = State();
  const std::lock_guard lock(state.mutex);
  state.tool = std::move(tool);
  state.level = level;
}

LogLevel CurrentLogLevel() {
  LogState& state = State();
  const std::lock_guard lock(state.mutex);
  return state.level;
}

void LogError(const std::string& message) {
  Print(LogLevel::kError, "error: ", message);
}
void LogWarning(const std::string& message) {
  Print(LogLevel::kWarning, "warning: ", message);
}
void LogInfo(const std::string& message) {
  Print(LogLevel::kInfo, "", message);
}
void LogDebug(const std::string& message) {
  Print(LogLevel::kDebug, "debug: ", message);
}
void LogHint(const std::string& message, LogLevel level) {
  Print(level, "hint: ", message);
}
void HoldInfo(const std::string& message) {
  LogState& state = State();
  const std::lock_guard lock(state.mutex);
  state.held.push_back(message);
}
void ReleaseHeldInfo() {
  LogState& state = State();
  const std::lock_guard lock(state.mutex);
  WriteHeld(&state);
}

void SetLogSpeaker(bool speaks) {
  LogState& state = State();
  const std::lock_guard lock(state.mutex);
  state.speaks_for_all = speaks;
}

void LogCommonWarning(const std::string& message, const std::string& hint) {
  {
    LogState& state = State();
    const std::lock_guard lock(state.mutex);
    if (!state.speaks_for_all) return;
  }
  LogWarning(message);
  if (!hint.empty()) LogHint(hint, LogLevel::kWarning);
}

void SetLogListener(LogListener* listener) {
  LogState& state = State();
  const std::lock_guard lock(state.mutex);
  state.listener = listener;
}

}  // namespace trainwright
