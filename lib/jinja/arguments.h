/// The arguments of a call, given to parameters by position and name as Python does.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "lib/jinja/value.h"

namespace trainwright::jinja {

class Parameters {
 public:
  /// \param function its name, for messages
  /// \throws Problem for arguments too many, too few, twice or of unknown names
  Parameters(const char* function, const Arguments& arguments, std::initializer_list<const char*> names,
             size_t required = 0);

  bool has(size_t i) const { return values_[i] != nullptr; }
  const Value& operator[](size_t i) const { return *values_[i]; }
  const Value& Or(size_t i, const Value& value) const { return has(i) ? *values_[i] : value; }
  /// \throws Problem for another type
  const std::string& Text(size_t i) const;
  int64_t Integer(size_t i) const;
  int64_t IntegerOr(size_t i, int64_t value) const { return has(i) ? Integer(i) : value; }
  bool TruthOr(size_t i, bool value) const { return has(i) ? values_[i]->Truth() : value; }

 private:
  const char* function_;
  std::vector<const Value*> values_;
};

}  // namespace trainwright::jinja
