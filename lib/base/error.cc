#include "lib/base/error.h"

#include <cerrno>
#include <cstring>
#include <utility>

namespace trainwright {

Error::Error(ErrorCode code, std::string object, std::string problem, std::string place, std::string hint)
    : code_(code),
      object_(std::move(object)),
      problem_(std::move(problem)),
      place_(std::move(place)),
      hint_(std::move(hint)) {
  if (!object_.empty()) message_ = object_ + ": ";
  message_ += problem_;
  if (!place_.empty()) message_ += " (" + place_ + ")";
}

namespace {

std::string UsualHint(int errno_value) {
  switch (errno_value) {
    case ENOSPC:
    case EDQUOT:
      return "free some space, or write to another disk";
    case EFBIG:
      return "raise the limit on the size of files (ulimit -f), or write smaller ones";
    case EROFS:
      return "write to another disk";
    default:
      return "";
  }
}

}  // namespace

Error SystemError(const std::string& object, const std::string& action, int errno_value, std::string hint) {
  const std::string usual = UsualHint(errno_value);
  return Error(ErrorCode::kIo, object, action + " failed: " + std::strerror(errno_value), "",
               usual.empty() ? std::move(hint) : usual);
}

void CheckFailed(const char* condition, const char* file, int line) {
  throw Error(ErrorCode::kInternal, "internal check", std::string(condition) + " does not hold",
              std::string(file) + ":" + std::to_string(line),
              "this is a bug; please report it with the command line");
}

}  // namespace trainwright
