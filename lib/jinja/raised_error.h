/// What raise_exception of a template throws: the template's own words about a conversation it refuses.
#pragma once

#include <string>

#include "lib/base/error.h"

namespace trainwright::jinja {

class RaisedError : public Error {
 public:
  RaisedError(const std::string& template_name, const std::string& message, const std::string& place)
      : Error(ErrorCode::kBadInput, template_name, message, place), message_(message) {}
  /// What the template says, alone.
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

}  // namespace trainwright::jinja
