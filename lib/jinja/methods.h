/// The methods of Python's str, list, tuple and dict.
#pragma once

#include <string_view>

#include "lib/jinja/machine.h"
#include "lib/jinja/value.h"

namespace trainwright::jinja {

using MethodFunction = Value (*)(Machine& machine, const Value& self, const Arguments& arguments);

/// Calls one, whose work on texts is counted: most go through them once.
Value CallMethod(Machine& machine, MethodFunction method, const Value& self, const Arguments& arguments);

/// Null where there is not one of this name.
MethodFunction FindMethod(const Value& self, std::string_view name);

enum class OtherAttribute {
  kNone,         ///< Python has no such attribute
  kBlocked,      ///< the sandbox makes it undefined: it would change the value
  kUnsupported,  ///< Python has it, this engine does not
};
OtherAttribute FindOtherAttribute(const Value& self, std::string_view name);

}  // namespace trainwright::jinja
