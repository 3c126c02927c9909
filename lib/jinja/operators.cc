#include "lib/jinja/operators.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/jinja/format.h"
#include "lib/jinja/methods.h"
#include "lib/jinja/span.h"
#include "lib/jinja/text.h"

namespace trainwright::jinja {
namespace {

class BoundMethod final : public Object {
 public:
  BoundMethod(MethodFunction function, Value self) : function_(function), self_(std::move(self)) {}
  std::string Repr() const override { throw Problem("a method was printed: Python writes its address"); }
  bool IsCallable() const override { return true; }
  Value Call(Machine& machine, Arguments& arguments) override {
    return CallMethod(machine, function_, self_, arguments);
  }

 private:
  MethodFunction function_;
  Value self_;
};

[[noreturn]] void WrongOperands(const char* sign, const Value& a, const Value& b) {
  for (const Value* value : {&a, &b}) {
    if (value->is_undefined()) throw Problem(value->UndefinedMessage());
  }
  throw Problem(std::string("unsupported operand types for ") + sign + ": '" + a.TypeName() + "' and '" +
                b.TypeName() + "'");
}

[[noreturn]] void TooLarge() {
  throw Problem("an integer does not fit 64 bits: not supported");
}

Value CheckedFloat(double value) {
  return Value::Float(value);
}

// What would escape for HTML: only Markup does.
void RefuseMarkup(const Value& a, const Value& b) {
  if (a.is_markup() || b.is_markup()) throw Problem("an operation on a Markup string is not supported");
}

Value Added(Machine& machine, const Value& a, const Value& b) {
  if (a.is_string() && b.is_string()) {
    RefuseMarkup(a, b);
    machine.Charge(a.traced().cost() + b.traced().cost() + 32);
    TracedText text = a.traced();
    text.Add(b.traced());
    return Value::String(std::move(text));
  }
  if (a.is_integer() && b.is_integer()) {
    int64_t sum = 0;
    if (__builtin_add_overflow(a.integer(), b.integer(), &sum)) TooLarge();
    return Value::Int(sum);
  }
  if (a.is_number() && b.is_number()) return CheckedFloat(a.number() + b.number());
  if (a.kind() == b.kind() && (a.is(Kind::kList) || a.is(Kind::kTuple))) {
    std::vector<Value> items = a.items();
    items.insert(items.end(), b.items().begin(), b.items().end());
    return machine.Sequence(a.kind(), std::move(items));
  }
  WrongOperands("+", a, b);
}

Value Subtracted(Machine&, const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) {
    int64_t difference = 0;
    if (__builtin_sub_overflow(a.integer(), b.integer(), &difference)) TooLarge();
    return Value::Int(difference);
  }
  if (a.is_number() && b.is_number()) return CheckedFloat(a.number() - b.number());
  if (a.is(Kind::kView) && b.is(Kind::kView)) throw Problem("the difference of views is not supported");
  WrongOperands("-", a, b);
}

Value Repeated(Machine& machine, const Value& a, int64_t count) {
  const auto times = static_cast<uint64_t>(std::max<int64_t>(count, 0));
  const uint64_t size = a.is_string() ? a.traced().cost() : a.items().size() * sizeof(Value);
  if (size > 0 && times > std::numeric_limits<uint64_t>::max() / size / 2)
    throw Problem("too much is repeated");
  machine.Charge(size * times + 32);
  if (a.is_string()) {
    RefuseMarkup(a, a);
    TracedText text;
    for (uint64_t i = 0; size > 0 && i < times; ++i) text.Add(a.traced());
    return Value::String(std::move(text));
  }
  std::vector<Value> items;
  for (uint64_t i = 0; size > 0 && i < times; ++i)
    items.insert(items.end(), a.items().begin(), a.items().end());
  return Value::Of(a.kind(), std::move(items), "");
}

Value Multiplied(Machine& machine, const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) {
    int64_t product = 0;
    if (__builtin_mul_overflow(a.integer(), b.integer(), &product)) TooLarge();
    return Value::Int(product);
  }
  if (a.is_number() && b.is_number()) return CheckedFloat(a.number() * b.number());
  const auto repeats = [](const Value& value) {
    return value.is_string() || value.is(Kind::kList) || value.is(Kind::kTuple);
  };
  if (repeats(a) && b.is_integer()) return Repeated(machine, a, b.integer());
  if (repeats(b) && a.is_integer()) return Repeated(machine, b, a.integer());
  WrongOperands("*", a, b);
}

void CheckDivisor(const char* sign, const Value& a, const Value& b) {
  if (!a.is_number() || !b.is_number()) WrongOperands(sign, a, b);
  if (b.number() == 0) throw Problem("division by zero");
}

Value Divided(Machine&, const Value& a, const Value& b) {
  CheckDivisor("/", a, b);
  constexpr int64_t kExact = int64_t{1} << 53;
  if (a.is_integer() && b.is_integer() && (std::abs(a.number()) > kExact || std::abs(b.number()) > kExact)) {
    return Value::Float(
        static_cast<double>(static_cast<long double>(a.integer()) / static_cast<long double>(b.integer())));
  }
  return Value::Float(a.number() / b.number());
}

double FloatRemainder(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest != 0 && (b < 0) != (rest < 0)) rest += b;
  return rest == 0 ? std::copysign(0.0, b) : rest;
}

Value FloorDivided(Machine&, const Value& a, const Value& b) {
  CheckDivisor("//", a, b);
  if (a.is_integer() && b.is_integer()) {
    if (a.integer() == std::numeric_limits<int64_t>::min() && b.integer() == -1) TooLarge();
    const int64_t quotient = a.integer() / b.integer();
    return Value::Int(quotient -
                      (a.integer() % b.integer() != 0 && (a.integer() < 0) != (b.integer() < 0) ? 1 : 0));
  }
  const double rest = FloatRemainder(a.number(), b.number());
  const double quotient = (a.number() - rest) / b.number();
  double floor = std::floor(quotient);
  if (quotient - floor > 0.5) floor += 1;
  return Value::Float(quotient == 0 ? std::copysign(0.0, a.number() / b.number()) : floor);
}

Value Remainder(Machine& machine, const Value& a, const Value& b) {
  if (a.is_string()) {
    RefuseMarkup(a, a);
    return machine.Text(PercentFormatted(machine, a.traced(), b));
  }
  CheckDivisor("%", a, b);
  if (a.is_integer() && b.is_integer()) {
    if (b.integer() == -1) return Value::Int(0);
    const int64_t rest = a.integer() % b.integer();
    return Value::Int(rest != 0 && (rest < 0) != (b.integer() < 0) ? rest + b.integer() : rest);
  }
  return Value::Float(FloatRemainder(a.number(), b.number()));
}

Value Power(Machine&, const Value& a, const Value& b) {
  if (!a.is_number() || !b.is_number()) WrongOperands("**", a, b);
  if (a.is_integer() && b.is_integer() && b.integer() >= 0) {
    int64_t result = 1, base = a.integer();
    for (uint64_t left = static_cast<uint64_t>(b.integer()); left > 0; left >>= 1) {
      if ((left & 1) != 0 && __builtin_mul_overflow(result, base, &result)) TooLarge();
      if (left > 1 && __builtin_mul_overflow(base, base, &base)) TooLarge();
    }
    return Value::Int(result);
  }
  if (a.number() == 0 && b.number() < 0) throw Problem("0 cannot be raised to a negative power");
  if (a.number() < 0 && std::floor(b.number()) != b.number())
    throw Problem("complex numbers are not supported");
  const double result = std::pow(a.number(), b.number());
  if (std::isinf(result) && !std::isinf(a.number()) && !std::isinf(b.number()))
    throw Problem("the result is too large");
  return Value::Float(result);
}

// Two values are looked through side by side until they differ, or one ends.
void CountComparison(Machine& machine, const Value& a, const Value& b) {
  machine.WorkOn(a.Weight() < b.Weight() ? a : b);
}

bool IsDunder(std::string_view name) {
  return name.starts_with("__") && name.ends_with("__");
}

// The item of a sequence or text at `key`; undefined where there is none.
Value IndexedItem(Machine& machine, const Value& object, int64_t index) {
  if (object.is_string()) {
    if (object.is_markup()) throw Problem("an operation on a Markup string is not supported");
    const std::string& text = object.text();
    machine.WorkOnBytes(text.size());
    const auto size = static_cast<int64_t>(PointCount(text));
    if (index < 0) index += size;
    if (index < 0 || index >= size) return Value();
    const size_t begin = ByteOf(text, static_cast<size_t>(index));
    size_t end = begin;
    NextPoint(text, &end);
    return machine.Text(object.traced().Part(std::string_view(text).substr(begin, end - begin)));
  }
  const auto size = static_cast<int64_t>(object.items().size());
  if (index < 0) index += size;
  return index < 0 || index >= size ? Value() : object.items()[static_cast<size_t>(index)];
}

bool IsIndexed(const Value& value) {
  return value.is_string() || value.is(Kind::kList) || value.is(Kind::kTuple) || value.is(Kind::kRange);
}

// An attribute of Python's; whether there is one.
bool FindAttribute(Machine& machine, const Value& object, const Value& name, Value* out) {
  const std::string& text = name.text();
  if (object.is(Kind::kObject)) {
    if (!object.object()->GetAttribute(machine, text, out)) return false;
    if (text.starts_with("_")) *out = Value::Undefined(name);  // the sandbox hides it
    return true;
  }
  if (IsDunder(text)) {
    *out = Value::Undefined(name);
    return !object.is(Kind::kDict);
  }
  if (const MethodFunction method = FindMethod(object, text)) {
    if (object.is_markup()) throw Problem("a method of a Markup string is not supported");
    machine.Charge(64);
    *out = Value::OfObject(std::make_shared<BoundMethod>(method, object));
    return true;
  }
  if (object.is(Kind::kTuple) && object.sequence().label == "group" &&
      (text == "grouper" || text == "list")) {
    *out = object.items()[text == "list" ? 1 : 0];
    return true;
  }
  switch (FindOtherAttribute(object, text)) {
    case OtherAttribute::kBlocked:
      *out = Value::Undefined(name);
      return true;
    case OtherAttribute::kUnsupported:
      throw Problem(std::string(object.TypeName()) + "." + text + " is not supported");
    case OtherAttribute::kNone:
      break;
  }
  return false;
}

}  // namespace

BinaryFunction BinaryOf(std::string_view sign) {
  if (sign == "+") return Added;
  if (sign == "-") return Subtracted;
  if (sign == "*") return Multiplied;
  if (sign == "/") return Divided;
  if (sign == "//") return FloorDivided;
  return sign == "%" ? Remainder : Power;
}

Value Negated(const Value& value) {
  if (value.is(Kind::kFloat)) return Value::Float(-value.number());
  if (!value.is_integer()) WrongOperands("unary -", value, value);
  if (value.integer() == std::numeric_limits<int64_t>::min()) TooLarge();
  return Value::Int(-value.integer());
}

bool Equal(Machine& machine, const Value& a, const Value& b) {
  if (!a.is_string() || !b.is_string() || a.text().size() == b.text().size()) CountComparison(machine, a, b);
  return Equal(a, b);
}

bool Ordered(Machine& machine, const Value& a, const Value& b, std::string_view sign) {
  CountComparison(machine, a, b);
  return Ordered(a, b, sign);
}

bool Contains(Machine& machine, const Value& a, const Value& b) {
  const auto is_sought = [&](const Value& item) {
    machine.Step();
    return Equal(machine, item, a);
  };
  if (b.is_string()) {
    if (!a.is_string()) WrongOperands("in", a, b);
    machine.WorkOnBytes(a.text().size() + b.text().size());
    return FindFirst(b.text(), a.text()) != std::string::npos;
  }
  if (b.is(Kind::kDict)) {
    machine.WorkOn(a);
    return b.dict().Find(a) != nullptr;
  }
  if (b.is(Kind::kIterator)) {  // looks no further than it must
    Sequence& sequence = b.sequence();
    while (sequence.taken < sequence.items.size()) {
      if (is_sought(sequence.items[sequence.taken++])) return true;
    }
    return false;
  }
  if (b.is_sequence()) return std::any_of(b.items().begin(), b.items().end(), is_sought);
  const std::vector<Value> items = ItemsOf(machine, b);
  return std::any_of(items.begin(), items.end(), is_sought);
}

Value GetAttribute(Machine& machine, const Value& object, const Value& name) {
  if (object.is_undefined() && name.text() != "__class__") throw Problem(object.UndefinedMessage());
  Value found;
  if (FindAttribute(machine, object, name, &found)) return found;
  if (object.is(Kind::kDict)) {
    if (const Value* item = object.dict().Find(name)) return *item;
  }
  return Value::Undefined(name);
}

Value GetItem(Machine& machine, const Value& object, const Value& key) {
  if (object.is_undefined()) throw Problem(object.UndefinedMessage());
  if (object.is(Kind::kDict)) {
    const bool hashable = !(key.is(Kind::kList) || key.is(Kind::kDict) || key.is(Kind::kView));
    if (hashable) machine.WorkOn(key);
    if (const Value* item = hashable ? object.dict().Find(key) : nullptr) return *item;
  } else if (IsIndexed(object) && key.is_integer()) {
    return IndexedItem(machine, object, key.integer());
  }
  Value found;
  if (key.is_string() && FindAttribute(machine, object, key, &found)) return found;
  return Value::Undefined(key);
}

Value GetSlice(Machine& machine, const Value& object, const Value& begin, const Value& end,
               const Value& step) {
  if (object.is_undefined()) throw Problem(object.UndefinedMessage());
  if (!IsIndexed(object))
    throw Problem(std::string("a slice of '") + object.TypeName() + "' is not possible");
  for (const Value* part : {&begin, &end, &step}) {
    if (!part->is(Kind::kNone) && !part->is_integer())
      throw Problem("slice indices must be integers or None");
  }
  if (object.is_markup()) throw Problem("an operation on a Markup string is not supported");
  if (object.is(Kind::kRange)) throw Problem("a slice of a range is not supported");
  const int64_t by = step.is(Kind::kNone) ? 1 : step.integer();
  if (by == 0) throw Problem("slice step cannot be zero");
  if (object.is_string()) machine.WorkOnBytes(object.text().size());
  const int64_t size = object.is_string() ? static_cast<int64_t>(PointCount(object.text()))
                                          : static_cast<int64_t>(object.items().size());
  const int64_t low = by > 0 ? 0 : -1, high = by > 0 ? size : size - 1;
  const auto bound = [&](const Value& value, int64_t missing) {
    if (value.is(Kind::kNone)) return missing;
    const int64_t at = value.integer();
    return std::clamp(at < 0 ? at + size : at, low, high);
  };
  const int64_t first = bound(begin, by > 0 ? low : high), last = bound(end, by > 0 ? high : low);
  if (object.is_string() && by == 1) {
    if (first >= last) return Value::String("");
    TracedText text;
    text.AddPart(object.traced(), ByteOf(object.text(), static_cast<size_t>(first)),
                 ByteOf(object.text(), static_cast<size_t>(last)));
    return machine.Text(std::move(text));
  }
  if (object.is_string()) machine.Charge(object.text().size() * (sizeof(std::string_view) + sizeof(int64_t)));
  std::vector<int64_t> indexes;
  for (int64_t i = first; by > 0 ? i < last : i > last;) {
    indexes.push_back(i);
    if (by > size || by < -size) break;
    i += by;
  }
  machine.Work(indexes.size() / 8);
  if (object.is_string()) {
    const std::vector<std::string_view> points = PointsOf(object.text());
    TracedText text;
    for (const int64_t i : indexes) text.Add(object.traced().Part(points[static_cast<size_t>(i)]));
    return machine.Text(std::move(text));
  }
  std::vector<Value> items;
  for (const int64_t i : indexes) items.push_back(object.items()[static_cast<size_t>(i)]);
  return machine.Sequence(object.kind(), std::move(items));
}

bool IsIterable(const Value& value) {
  if (value.is(Kind::kObject)) return value.object()->Items() != nullptr;
  return value.is_undefined() || value.is_string() || value.is(Kind::kDict) || value.is_sequence();
}

std::vector<Value> ItemsOf(Machine& machine, const Value& value) {
  std::vector<Value> items;
  const auto count = [&](size_t size) {
    machine.Charge(size * sizeof(Value));
    machine.Work(size / 8);
  };
  switch (value.kind()) {
    case Kind::kUndefined:
      return items;
    case Kind::kString:
      if (value.is_markup()) throw Problem("an operation on a Markup string is not supported");
      machine.Charge(value.text().size() *
                     (sizeof(Value) + 32 + (value.traced().has_data() ? sizeof(Span) : 0)));
      machine.Work(value.text().size());
      for (size_t at = 0; at < value.text().size();) {
        const size_t begin = at;
        NextPoint(value.text(), &at);
        const std::string_view point = std::string_view(value.text()).substr(begin, at - begin);
        items.push_back(Value::String(value.traced().Part(point)));
      }
      return items;
    case Kind::kDict:
      count(value.dict().items().size());
      for (const auto& item : value.dict().items()) items.push_back(item.first);
      break;
    case Kind::kIterator: {
      Sequence& sequence = value.sequence();
      const auto begin = sequence.items.begin() + static_cast<std::ptrdiff_t>(sequence.taken);
      count(sequence.items.size() - sequence.taken);
      items.assign(begin, sequence.items.end());
      sequence.taken = sequence.items.size();
      break;
    }
    case Kind::kObject:
      if (const std::vector<Value>* left = value.object()->Items()) {
        count(left->size());
        return *left;
      }
      throw Problem("an object is not iterable");
    default:
      if (!value.is_sequence())
        throw Problem(std::string("'") + value.TypeName() + "' object is not iterable");
      count(value.items().size());
      items = value.items();
  }
  return items;
}

int64_t LengthOf(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return static_cast<int64_t>(PointCount(value.text()));
    case Kind::kDict:
      return static_cast<int64_t>(value.dict().items().size());
    case Kind::kIterator:
      break;
    default:
      if (value.is_sequence()) return static_cast<int64_t>(value.items().size());
  }
  throw Problem(std::string("object of type '") + value.TypeName() + "' has no len()");
}

}  // namespace trainwright::jinja
