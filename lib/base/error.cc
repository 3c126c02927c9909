#include "lib/base/error.h"

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

Error SystemError(const std::string& object, const std::string& action, int errno_value, std::string hint) {
  return Error(ErrorCode::kIo, object, action + " failed: " + std::strerror(errno_value), "",
               std::move(hint));
}

void CheckFailed(const char* condition, const char* file, int line) {
  throw Error(ErrorCode::kInternal, "internal check", std::string(condition) + " does not hold",
              std::string(file) + ":" + std::to_string(line),
              "this is a bug; please report it with the command line");
}

}  // namespace trainwright
