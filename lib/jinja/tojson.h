/// Values as Python's json.dumps writes them.
#pragma once

#include <string>

#include "lib/jinja/machine.h"
#include "lib/jinja/value.h"

namespace trainwright::jinja {

struct JsonLayout {
  bool ascii = false;     ///< escapes for what is beyond ASCII
  bool indented = false;  ///< a line an item, `indent` a level
  std::string indent;
  std::string between_items = ", ", after_key = ": ";
  bool sorted = false;
};

/// \throws Problem for what is no JSON
std::string ToJson(Machine& machine, const Value& value, const JsonLayout& layout);

}  // namespace trainwright::jinja
