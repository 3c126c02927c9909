#include "lib/jinja/arguments.h"

namespace trainwright::jinja {

Parameters::Parameters(const char* function, const Arguments& arguments,
                       std::initializer_list<const char*> names, size_t required)
    : function_(function), values_(names.size(), nullptr) {
  const std::string object(function);
  if (arguments.positional.size() > names.size()) {
    throw Problem(object + " takes at most " + std::to_string(names.size()) + " arguments");
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    size_t i = 0;
    while (i < names.size() && name != names.begin()[i]) ++i;
    if (i == names.size()) throw Problem(object + " takes no argument '" + name + "'");
    if (values_[i] != nullptr) throw Problem(object + " got its argument '" + name + "' twice");
    values_[i] = &value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (values_[i] == nullptr) throw Problem(object + " needs the argument '" + names.begin()[i] + "'");
  }
}

const std::string& Parameters::Text(size_t i) const {
  const Value& value = *values_[i];
  if (value.is_undefined()) throw Problem(value.UndefinedMessage());
  if (!value.is_string()) throw Problem(std::string(function_) + " needs a string, not " + value.TypeName());
  if (value.is_markup()) throw Problem(std::string(function_) + " of a Markup string is not supported");
  return value.text();
}

int64_t Parameters::Integer(size_t i) const {
  const Value& value = *values_[i];
  if (value.is_undefined()) throw Problem(value.UndefinedMessage());
  if (!value.is_integer())
    throw Problem(std::string(function_) + " needs an integer, not " + value.TypeName());
  return value.integer();
}

}  // namespace trainwright::jinja
