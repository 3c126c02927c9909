#include "lib/jinja/value_tests.h"

#include <unordered_map>

#include "lib/jinja/arguments.h"
#include "lib/jinja/filters.h"
#include "lib/jinja/format.h"
#include "lib/jinja/operators.h"

namespace trainwright::jinja {
namespace {

using Tests = std::unordered_map<std::string_view, TestFunction>;

template <bool (*is)(const Value&)>
bool Plain(Machine&, const Value& value, Arguments& arguments) {
  const Parameters none("the test", arguments, {});
  return is(value);
}

bool IsNone(const Value& value) {
  return value.is(Kind::kNone);
}
bool IsDefined(const Value& value) {
  return !value.is_undefined();
}
bool IsUndefined(const Value& value) {
  return value.is_undefined();
}
bool IsBoolean(const Value& value) {
  return value.is(Kind::kBool);
}
bool IsTrue(const Value& value) {
  return value.is(Kind::kBool) && value.boolean();
}
bool IsFalse(const Value& value) {
  return value.is(Kind::kBool) && !value.boolean();
}
bool IsInteger(const Value& value) {
  return value.is(Kind::kInt);
}
bool IsFloat(const Value& value) {
  return value.is(Kind::kFloat);
}
bool IsNumber(const Value& value) {
  return value.is_number();
}
bool IsString(const Value& value) {
  return value.is_string();
}
bool IsMapping(const Value& value) {
  return value.is(Kind::kDict);
}
bool IsSequence(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
    case Kind::kDict:
      return true;
    default:
      return false;
  }
}
bool IsEscaped(const Value& value) {
  return value.is_markup();
}
template <bool upper>
bool IsCased(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters none("the test", arguments, {});
  machine.WorkOn(value);
  return IsCaseOf(Str(value), upper);
}
bool IsCallable(const Value& value) {
  return value.is_undefined() || (value.is(Kind::kObject) && value.object()->IsCallable());
}

bool IsKnownFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters none("filter", arguments, {});
  machine.WorkOn(value);
  HashOf(value);
  return value.is_string() && IsFilterOfJinja(value.text());
}

bool IsKnownTest(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters none("test", arguments, {});
  machine.WorkOn(value);
  HashOf(value);
  return value.is_string() && FindTest(value.text()) != nullptr;
}

int64_t RestOf(Machine& machine, const Value& value, int64_t by) {
  static const BinaryFunction kRemainder = BinaryOf("%");
  if (value.is_string()) throw Problem("a string is not divisible");
  const Value rest = kRemainder(machine, value, Value::Int(by));
  return rest.is(Kind::kFloat) ? (rest.number() == 0 ? 0 : rest.number() == 1 ? 1 : 2) : rest.integer();
}

bool IsOdd(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters none("odd", arguments, {});
  return RestOf(machine, value, 2) == 1;
}

bool IsEven(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters none("even", arguments, {});
  return RestOf(machine, value, 2) == 0;
}

bool IsDivisible(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("divisibleby", arguments, {"num"}, 1);
  return RestOf(machine, value, given.Integer(0)) == 0;
}

bool IsSame(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("sameas", arguments, {"other"}, 1);
  if (value.is_string() && given[0].is_string()) machine.WorkOn(value);
  return Same(value, given[0]);
}

bool IsIn(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("in", arguments, {"seq"}, 1);
  return Contains(machine, value, given[0]);
}

bool IsEqual(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("eq", arguments, {"other"}, 1);
  return Equal(machine, value, given[0]);
}

bool IsUnequal(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("ne", arguments, {"other"}, 1);
  return !Equal(machine, value, given[0]);
}

bool IsLess(Machine& machine, const Value& value, Arguments& arguments) {
  return Ordered(machine, value, Parameters("lt", arguments, {"other"}, 1)[0], "<");
}
bool IsAtMost(Machine& machine, const Value& value, Arguments& arguments) {
  return Ordered(machine, value, Parameters("le", arguments, {"other"}, 1)[0], "<=");
}
bool IsGreater(Machine& machine, const Value& value, Arguments& arguments) {
  return Ordered(machine, value, Parameters("gt", arguments, {"other"}, 1)[0], ">");
}
bool IsAtLeast(Machine& machine, const Value& value, Arguments& arguments) {
  return Ordered(machine, value, Parameters("ge", arguments, {"other"}, 1)[0], ">=");
}

}  // namespace

TestFunction FindTest(std::string_view name) {
  static const Tests kTests = {
      {"odd", IsOdd},
      {"even", IsEven},
      {"divisibleby", IsDivisible},
      {"defined", Plain<IsDefined>},
      {"undefined", Plain<IsUndefined>},
      {"filter", IsKnownFilter},
      {"test", IsKnownTest},
      {"none", Plain<IsNone>},
      {"boolean", Plain<IsBoolean>},
      {"false", Plain<IsFalse>},
      {"true", Plain<IsTrue>},
      {"integer", Plain<IsInteger>},
      {"float", Plain<IsFloat>},
      {"lower", IsCased<false>},
      {"upper", IsCased<true>},
      {"string", Plain<IsString>},
      {"mapping", Plain<IsMapping>},
      {"number", Plain<IsNumber>},
      {"sequence", Plain<IsSequence>},
      {"iterable", Plain<IsIterable>},
      {"callable", Plain<IsCallable>},
      {"sameas", IsSame},
      {"escaped", Plain<IsEscaped>},
      {"in", IsIn},
      {"==", IsEqual},
      {"eq", IsEqual},
      {"equalto", IsEqual},
      {"!=", IsUnequal},
      {"ne", IsUnequal},
      {">", IsGreater},
      {"gt", IsGreater},
      {"greaterthan", IsGreater},
      {"ge", IsAtLeast},
      {">=", IsAtLeast},
      {"<", IsLess},
      {"lt", IsLess},
      {"lessthan", IsLess},
      {"<=", IsAtMost},
      {"le", IsAtMost},
  };
  const auto it = kTests.find(name);
  return it == kTests.end() ? nullptr : it->second;
}

}  // namespace trainwright::jinja
