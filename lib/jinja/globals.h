/// The functions that templates may call: range, dict, namespace, cycler, joiner, raise_exception and
/// strftime_now.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lib/jinja/machine.h"
#include "lib/jinja/value.h"

namespace trainwright::jinja {

/// Values that templates may change.
class Namespace final : public Object {
 public:
  std::string Repr() const override;
  bool GetAttribute(Machine& machine, std::string_view name, Value* out) override;
  /// \throws Problem for names that transformers refuses
  void Set(const std::string& name, const Value& value);
  void Clear() { values_ = Dict(); }

 private:
  Dict values_;
};

/// Whether there is a function of this name.
bool FindGlobal(std::string_view name, Value* out);
/// A function of C++ as a value.
Value FunctionValue(Value (*function)(Machine& machine, Arguments& arguments));

}  // namespace trainwright::jinja
