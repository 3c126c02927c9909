#include "lib/jinja/globals.h"

#include <unordered_map>

#include "lib/jinja/arguments.h"
#include "lib/jinja/operators.h"
#include "lib/jinja/strftime.h"

namespace trainwright::jinja {
namespace {

constexpr int64_t kMostOfRange = 100'000;  // what Jinja's sandbox allows

using GlobalFunction = Value (*)(Machine& machine, Arguments& arguments);

class Function final : public Object {
 public:
  explicit Function(GlobalFunction function) : function_(function) {}
  std::string Repr() const override { throw Problem("a function was printed: Python writes its address"); }
  bool IsCallable() const override { return true; }
  Value Call(Machine& machine, Arguments& arguments) override { return function_(machine, arguments); }

 private:
  GlobalFunction function_;
};

Value Range(Machine& machine, Arguments& arguments) {
  const Parameters given("range", arguments, {"start", "stop", "step"}, 1);
  if (!arguments.named.empty()) throw Problem("range() takes no keyword arguments");
  const int64_t begin = given.has(1) ? given.Integer(0) : 0;
  const int64_t end = given.Integer(given.has(1) ? 1 : 0), step = given.IntegerOr(2, 1);
  if (step == 0) throw Problem("range() arg 3 must not be zero");
  std::vector<Value> items;
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    if (static_cast<int64_t>(items.size()) == kMostOfRange) throw Problem("Range too big");
    items.push_back(Value::Int(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  std::string repr = "range(" + std::to_string(begin) + ", " + std::to_string(end);
  if (step != 1) repr += ", " + std::to_string(step);
  return machine.Sequence(Kind::kRange, std::move(items), repr + ")");
}

// What dict() and namespace() take: a dict or pairs, and names.
Dict DictOf(Machine& machine, const Arguments& arguments) {
  Dict dict;
  if (arguments.positional.size() > 1) throw Problem("dict expected at most 1 argument");
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional[0];
    if (from.is(Kind::kDict)) {
      dict = from.dict();
    } else {
      for (const Value& pair : ItemsOf(machine, from)) {
        const std::vector<Value> parts = ItemsOf(machine, pair);
        if (parts.size() != 2) throw Problem("dict needs pairs");
        dict.Set(parts[0], parts[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) dict.Set(arguments.NameOf(name), value);
  machine.Charge(dict.items().size() * sizeof(Value) * 2);
  return dict;
}

Value MakeDict(Machine& machine, Arguments& arguments) {
  return Value::OfDict(DictOf(machine, arguments));
}

Value MakeNamespace(Machine& machine, Arguments& arguments) {
  auto made = std::make_shared<Namespace>();
  machine.AtEnd([made] { made->Clear(); });
  const Dict dict = DictOf(machine, arguments);
  for (const auto& [name, value] : dict.items()) {
    if (!name.is_string()) throw Problem("the names of a namespace are strings");
    made->Set(name.text(), value);
  }
  return Value::OfObject(std::move(made));
}

class Joiner final : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string Repr() const override { throw Problem("a joiner was printed: Python writes its address"); }
  bool IsCallable() const override { return true; }
  bool GetAttribute(Machine&, std::string_view name, Value* out) override {
    if (name == "sep") *out = separator_;
    if (name == "used") *out = Value::Bool(used_);
    return name == "sep" || name == "used";
  }
  Value Call(Machine&, Arguments& arguments) override {
    const Parameters none("joiner", arguments, {});
    return std::exchange(used_, true) ? separator_ : Value::String("");
  }

 private:
  Value separator_;
  bool used_ = false;
};

Value MakeJoiner(Machine&, Arguments& arguments) {
  const Parameters given("joiner", arguments, {"sep"});
  return Value::OfObject(std::make_shared<Joiner>(given.Or(0, Value::String(", "))));
}

// The state that a cycler and its methods share.
struct Cycle {
  std::vector<Value> items;
  size_t at = 0;
};

class CyclerMethod final : public Object {
 public:
  CyclerMethod(std::shared_ptr<Cycle> cycle, bool resets) : cycle_(std::move(cycle)), resets_(resets) {}
  std::string Repr() const override { throw Problem("a method was printed: Python writes its address"); }
  bool IsCallable() const override { return true; }
  Value Call(Machine&, Arguments& arguments) override {
    const Parameters none("the method of a cycler", arguments, {});
    const size_t at = cycle_->at;
    cycle_->at = resets_ ? 0 : (at + 1) % cycle_->items.size();
    return resets_ ? Value::None() : cycle_->items[at];
  }

 private:
  std::shared_ptr<Cycle> cycle_;
  bool resets_;
};

class Cycler final : public Object {
 public:
  explicit Cycler(std::vector<Value> items) : cycle_(std::make_shared<Cycle>(Cycle{std::move(items), 0})) {}
  std::string Repr() const override { throw Problem("a cycler was printed: Python writes its address"); }
  bool GetAttribute(Machine&, std::string_view name, Value* out) override {
    if (name == "current") {
      *out = cycle_->items[cycle_->at];
    } else if (name == "next" || name == "reset") {
      *out = Value::OfObject(std::make_shared<CyclerMethod>(cycle_, name == "reset"));
    } else if (name == "pos") {
      *out = Value::Int(static_cast<int64_t>(cycle_->at));
    } else if (name == "items") {
      *out = Value::Tuple(cycle_->items);
    } else {
      return false;
    }
    return true;
  }

 private:
  std::shared_ptr<Cycle> cycle_;
};

Value MakeCycler(Machine&, Arguments& arguments) {
  if (!arguments.named.empty()) throw Problem("cycler takes no named arguments");
  if (arguments.positional.empty()) throw Problem("at least one item has to be provided");
  return Value::OfObject(std::make_shared<Cycler>(arguments.positional));
}

Value RaiseException(Machine&, Arguments& arguments) {
  const Parameters given("raise_exception", arguments, {"message"}, 1);
  throw Raised(Str(given[0]));
}

Value TimeNow(Machine& machine, Arguments& arguments) {
  const Parameters given("strftime_now", arguments, {"format"}, 1);
  const Machine::DataScope scope(machine, given[0], arguments);
  return machine.Text(FormatTime(given.Text(0), machine.options().now));
}

Value RefuseLipsum(Machine&, Arguments&) {
  throw Problem("lipsum is not supported");
}

}  // namespace

std::string Namespace::Repr() const {
  std::string out = "<Namespace {";
  bool first = true;
  for (const auto& [name, value] : values_.items()) {
    if (value.is(Kind::kObject) || value.Nesting() > 0)
      throw Problem("printing this namespace is not supported");
    out += (first ? "" : ", ") + jinja::Repr(name) + ": " + jinja::Repr(value);
    first = false;
  }
  return out + "}>";
}

bool Namespace::GetAttribute(Machine&, std::string_view name, Value* out) {
  const Value* found = values_.Find(name);
  if (found != nullptr) *out = *found;
  return found != nullptr;
}

void Namespace::Set(const std::string& name, const Value& value) {
  if (name.starts_with('_'))
    throw Problem("a namespace takes no name with an underscore in front: '" + name + "'");
  values_.Set(Value::String(name), value);
}

bool FindGlobal(std::string_view name, Value* out) {
  static const std::unordered_map<std::string_view, GlobalFunction> kFunctions = {
      {"range", Range},          {"dict", MakeDict},       {"namespace", MakeNamespace},
      {"joiner", MakeJoiner},    {"cycler", MakeCycler},   {"raise_exception", RaiseException},
      {"strftime_now", TimeNow}, {"lipsum", RefuseLipsum},
  };
  const auto it = kFunctions.find(name);
  if (it == kFunctions.end()) return false;
  *out = FunctionValue(it->second);
  return true;
}

Value FunctionValue(GlobalFunction function) {
  return Value::OfObject(std::make_shared<Function>(function));
}

}  // namespace trainwright::jinja
