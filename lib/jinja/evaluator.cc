#include "lib/jinja/evaluator.h"

#include <algorithm>

#include "lib/jinja/globals.h"
#include "lib/jinja/json_value.h"
#include "lib/jinja/methods.h"
#include "lib/jinja/operators.h"

namespace trainwright::jinja {

Value Evaluator::Evaluate(const Expression& expression) {
  machine_.Step();
  if (expression.looks_around) machine_.NoteLookAround();
  switch (expression.kind) {
    case ExpressionKind::kConstant:
      return expression.value;
    case ExpressionKind::kName:
      return EvaluateName(expression);
    default:
      break;
  }
  const Machine::Level level(machine_);
  return EvaluateOperation(expression);
}

Value Evaluator::EvaluateOperation(const Expression& expression) {
  const auto part = [&](size_t i) { return Evaluate(*expression.parts[i]); };
  switch (expression.kind) {
    case ExpressionKind::kList:
      return machine_.List(EvaluateParts(expression, 0));
    case ExpressionKind::kTuple:
      return machine_.Sequence(Kind::kTuple, EvaluateParts(expression, 0));
    case ExpressionKind::kDict:
      return EvaluateDict(expression);
    case ExpressionKind::kConcat:
      return EvaluateConcat(expression);
    case ExpressionKind::kBinary: {
      const Value left = part(0);
      return expression.binary(machine_, left, part(1));
    }
    case ExpressionKind::kNegative:
      return Negated(part(0));
    case ExpressionKind::kPositive: {
      const Value value = part(0);
      Negated(value);
      return value.is(Kind::kBool) ? Value::Int(value.integer()) : value;
    }
    case ExpressionKind::kNot:
      return Value::Bool(!part(0).Truth());
    case ExpressionKind::kAnd: {
      const Value left = part(0);
      return left.Truth() ? part(1) : left;
    }
    case ExpressionKind::kOr: {
      const Value left = part(0);
      return left.Truth() ? left : part(1);
    }
    case ExpressionKind::kCompare:
      return EvaluateCompare(expression);
    case ExpressionKind::kCondition:
      if (part(0).Truth()) return part(1);
      return expression.parts[2] != nullptr ? part(2) : Value();
    case ExpressionKind::kAttribute:
      return GetAttribute(machine_, part(0), expression.value);
    case ExpressionKind::kItem:
      return EvaluateItem(expression);
    case ExpressionKind::kCall:
      return EvaluateCall(expression, nullptr);
    case ExpressionKind::kFilter:
      return EvaluateFilter(expression);
    case ExpressionKind::kTest:
      return EvaluateTest(expression);
    default:
      throw Problem("this expression is in a wrong place");
  }
}

const Value& Evaluator::Global(int id) {
  std::optional<Value>& global = globals_[static_cast<size_t>(id)];
  if (!global.has_value()) {
    const std::string& name = tree_.names[static_cast<size_t>(id)];
    Value value = Value::Undefined(Value::String(name));
    const auto it = variables_.find(name);
    if (it != variables_.end()) {
      const std::vector<std::string>& data = machine_.options().data_variables;
      value = ValueOfJson(machine_, *it, std::find(data.begin(), data.end(), name) != data.end());
    } else {
      FindGlobal(name, &value);
    }
    global = std::move(value);
  }
  return *global;
}

Value Evaluator::EvaluateName(const Expression& expression) {
  const Value* found = scope_->Find(expression.id);
  return found != nullptr ? *found : Global(expression.id);
}

Value Evaluator::EvaluateItem(const Expression& expression) {
  const Value object = Evaluate(*expression.parts[0]);
  const Expression& key = *expression.parts[1];
  if (key.kind != ExpressionKind::kSlice) return GetItem(machine_, object, Evaluate(key));
  const auto bound = [&](size_t i) {
    return key.parts[i] == nullptr ? Value::None() : Evaluate(*key.parts[i]);
  };
  const Value begin = bound(0), end = bound(1), step = bound(2);
  return GetSlice(machine_, object, begin, end, step);
}

Value Evaluator::EvaluateCompare(const Expression& expression) {
  Value left = Evaluate(*expression.parts[0]);
  for (size_t i = 0; i < expression.signs.size(); ++i) {
    Value right = Evaluate(*expression.parts[i + 1]);
    const std::string& sign = expression.signs[i];
    bool holds = false;
    if (sign == "==") {
      holds = Equal(machine_, left, right);
    } else if (sign == "!=") {
      holds = !Equal(machine_, left, right);
    } else if (sign == "in" || sign == "not in") {
      holds = Contains(machine_, left, right) == (sign == "in");
    } else {
      holds = Ordered(machine_, left, right, sign);
    }
    if (!holds) return Value::Bool(false);
    left = std::move(right);
  }
  return Value::Bool(true);
}

Value Evaluator::EvaluateConcat(const Expression& expression) {
  TracedText text;
  for (const ExpressionPtr& part : expression.parts) {
    const Value value = Evaluate(*part);
    machine_.WorkOn(value);
    const TracedText piece = TracedStr(value);
    machine_.Charge(piece.cost());
    text.Add(piece);
  }
  machine_.Charge(32);
  return Value::String(std::move(text));
}

Value Evaluator::EvaluateDict(const Expression& expression) {
  Dict dict;
  machine_.Charge(expression.parts.size() * sizeof(Value) + 64);
  for (size_t i = 0; i + 1 < expression.parts.size(); i += 2) {
    const Value key = Evaluate(*expression.parts[i]);
    machine_.WorkOn(key);
    dict.Set(key, Evaluate(*expression.parts[i + 1]));
  }
  return Value::OfDict(std::move(dict));
}

std::vector<Value> Evaluator::EvaluateParts(const Expression& expression, size_t from) {
  std::vector<Value> values;
  values.reserve(expression.parts.size() - std::min(from, expression.parts.size()));
  for (size_t i = from; i < expression.parts.size(); ++i) values.push_back(Evaluate(*expression.parts[i]));
  return values;
}

Arguments Evaluator::EvaluateArguments(const Expression& expression) {
  Arguments arguments;
  arguments.positional = EvaluateParts(expression, 1);
  for (const auto& [name, value] : expression.named) arguments.named.emplace_back(name, Evaluate(*value));
  if (expression.more_positional != nullptr) {
    for (Value& item : ItemsOf(machine_, Evaluate(*expression.more_positional))) {
      arguments.positional.push_back(std::move(item));
    }
  }
  if (expression.more_named != nullptr) {
    const Value more = Evaluate(*expression.more_named);
    if (!more.is(Kind::kDict)) throw Problem("what follows ** is no dict");
    for (const auto& [name, value] : more.dict().items()) {
      if (!name.is_string()) throw Problem("the names of arguments are strings");
      machine_.Work(arguments.named.size() / 8);
      const auto same = [&, key = name](const auto& other) { return other.first == key.text(); };
      if (std::any_of(arguments.named.begin(), arguments.named.end(), same)) {
        throw Problem("the argument '" + name.text() + "' is there twice");
      }
      arguments.has_names_of_data = arguments.has_names_of_data || name.HasData();
      arguments.named.emplace_back(name.text(), value);
    }
  }
  return arguments;
}

Value Evaluator::EvaluateCall(const Expression& expression, const Value* caller) {
  const Expression& callee = *expression.parts[0];
  machine_.set_line(expression.line);
  if (callee.kind == ExpressionKind::kAttribute && caller == nullptr) {
    const Value object = Evaluate(*callee.parts[0]);
    const MethodFunction method = object.is_markup() ? nullptr : FindMethod(object, callee.value.text());
    if (method != nullptr) return CallMethod(machine_, method, object, EvaluateArguments(expression));
    const Value function = GetAttribute(machine_, object, callee.value);
    if (function.is_undefined()) throw Problem(function.UndefinedMessage());
    if (!function.is(Kind::kObject))
      throw Problem(std::string("'") + function.TypeName() + "' object is not callable");
    Arguments arguments = EvaluateArguments(expression);
    return function.object()->Call(machine_, arguments);
  }
  const Value function = Evaluate(callee);
  Arguments arguments = EvaluateArguments(expression);
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  if (function.is_undefined()) throw Problem(function.UndefinedMessage());
  if (!function.is(Kind::kObject))
    throw Problem(std::string("'") + function.TypeName() + "' object is not callable");
  return function.object()->Call(machine_, arguments);
}

Value Evaluator::EvaluateFilter(const Expression& expression) {
  const Value value = expression.parts[0] == nullptr ? block_value_ : Evaluate(*expression.parts[0]);
  Arguments arguments = EvaluateArguments(expression);
  const Machine::DataScope scope(machine_, value, arguments);
  Value filtered = expression.filter(machine_, value, arguments);
  // Rounds of the loop could take the items of an iterator from each other.
  if (filtered.is(Kind::kIterator) && !in_turn_loop_) machine_.NoteLookAround();
  return filtered;
}

Value Evaluator::EvaluateTest(const Expression& expression) {
  const Value value = Evaluate(*expression.parts[0]);
  Arguments arguments = EvaluateArguments(expression);
  return Value::Bool(expression.test(machine_, value, arguments));
}

}  // namespace trainwright::jinja
