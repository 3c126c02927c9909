/// The suite's one exception type.
///
/// Anything that a caller may report is thrown as an Error that names the object, the problem, the place and
/// what to do about it. RunTool (lib/cli) prints it as
///   tool: error: <object>: <problem> (<place>)
///   tool: hint: <hint>
/// and turns the code into the exit status. Bugs of our own use TRAINWRIGHT_CHECK, never file content.
#pragma once

#include <exception>
#include <string>

namespace trainwright {

/// Exit statuses of every tool; the numbers are part of the command-line contract.
enum class ErrorCode : int {
  kNo = 1,             ///< the answer is "no": verify mismatch, threshold not met
  kUsage = 2,          ///< wrong flags or configuration
  kBadInput = 3,       ///< corrupt, truncated, unknown version, wrong tokenizer
  kIo = 4,             ///< open, read or write failed, disk full, standard output closed
  kDevice = 5,         ///< no GPU though required, out of device memory
  kNonFinite = 6,      ///< non-finite loss or gradient
  kUndecided = 7,      ///< measurement too noisy to answer
  kInternal = 70,      ///< a bug in this program
  kInterrupted = 130,  ///< SIGINT
  kReaderLeft = 141,   ///< SIGPIPE, of a filter that is one of several processes
  kTerminated = 143,   ///< SIGTERM
};

class Error : public std::exception {
 public:
  /// \param object  what the message is about: a file, a flag, a record
  /// \param problem what is wrong with it
  /// \param place   where inside the object: "line 3", "byte 4096"; may be empty
  /// \param hint    what the user can do, naming the flag to change; may be empty
  Error(ErrorCode code, std::string object, std::string problem, std::string place = "",
        std::string hint = "");

  ErrorCode code() const noexcept { return code_; }
  const std::string& object() const noexcept { return object_; }
  const std::string& problem() const noexcept { return problem_; }
  const std::string& place() const noexcept { return place_; }
  const std::string& hint() const noexcept { return hint_; }
  /// "<object>: <problem> (<place>)", without tool name and hint.
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorCode code_;
  std::string object_, problem_, place_, hint_, message_;
};

/// An Error{kIo} for a failed system call on `object`: "<action> failed: <strerror(errno_value)>". A full or
/// read-only disk and a limit on the size of files bring their own hint instead of the caller's.
Error SystemError(const std::string& object, const std::string& action, int errno_value,
                  std::string hint = "");

[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace trainwright

/// Stops with Error{kInternal} when a condition that only our own bugs can break does not hold.
#define TRAINWRIGHT_CHECK(condition)                                              \
  do {                                                                            \
    if (!(condition)) ::trainwright::CheckFailed(#condition, __FILE__, __LINE__); \
  } while (false)
