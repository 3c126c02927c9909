/// Messages to people, on standard error: "tool: warning: ...".
///
/// Thread-safe: one message is one write. Standard output is never touched.
#pragma once

#include <string>

namespace trainwright {

enum class LogLevel { kError, kWarning, kInfo, kDebug };

/// Sets the name that starts each line and the most verbose level that is printed. Called once by RunTool.
void ConfigureLog(std::string tool, LogLevel level);
LogLevel CurrentLogLevel();

void LogError(const std::string& message);
void LogWarning(const std::string& message);
/// Info lines carry no level word: "tool: message".
void LogInfo(const std::string& message);
void LogDebug(const std::string& message);
/// As LogInfo, but later: before the next message, or by ReleaseHeldInfo. An error drops what is held, and so
/// is all that is printed. For what is said about the work before its input has been found sound.
void HoldInfo(const std::string& message);
/// Prints what is held, in its order.
void ReleaseHeldInfo();
/// "tool: hint: message"; printed whenever messages of the level that it belongs to are.
void LogHint(const std::string& message, LogLevel level = LogLevel::kError);

/// Whether this process speaks for all where it is one of several; each does by default.
void SetLogSpeaker(bool speaks);
/// A warning of what all processes of a run find alike, and a hint where it is not empty: only the one that
/// speaks for all prints it.
void LogCommonWarning(const std::string& message, const std::string& hint = "");

/// Called before and after each line is written, so that a progress bar can clear and redraw itself.
class LogListener {
 public:
  virtual ~LogListener() = default;
  virtual void BeforeLine() = 0;
  virtual void AfterLine() = 0;
};
/// Registers the one listener (nullptr removes it).
void SetLogListener(LogListener* listener);

}  // namespace trainwright
