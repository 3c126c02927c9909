#include "lib/jinja/interpreter.h"

#include <algorithm>

#include "lib/jinja/globals.h"
#include "lib/jinja/loop.h"
#include "lib/jinja/operators.h"

namespace trainwright::jinja {
namespace {

class Macro final : public Object {
 public:
  Macro(Interpreter& interpreter, const Statement& statement, std::shared_ptr<Scope> outer)
      : interpreter_(interpreter), statement_(statement), outer_(std::move(outer)) {}

  std::string Repr() const override {
    return "<Macro " + (statement_.value.is_string() ? jinja::Repr(statement_.value) : "anonymous") + ">";
  }
  bool IsCallable() const override { return true; }
  bool GetAttribute(Machine&, std::string_view name, Value* out) override {
    if (name == "name") *out = statement_.value;
    if (name == "arguments") {
      std::vector<Value> names;
      for (const std::string& parameter : statement_.parameter_names)
        names.push_back(Value::String(parameter));
      *out = Value::Tuple(std::move(names));
    }
    if (name == "catch_kwargs" || name == "catch_varargs" || name == "caller") {
      throw Problem("this attribute of a macro is not supported");
    }
    return name == "name" || name == "arguments";
  }
  Value Call(Machine&, Arguments& arguments) override {
    return interpreter_.CallMacro(statement_, outer_, arguments);
  }
  /// The scope holds the macro, and so the macro must let go of it.
  void Release() { outer_.reset(); }

 private:
  Interpreter& interpreter_;
  const Statement& statement_;
  std::shared_ptr<Scope> outer_;
};

// Sets a variable for as long as it lives.
template <typename T>
class Setting {
 public:
  Setting(T* variable, T value) : variable_(variable), before_(std::exchange(*variable, std::move(value))) {}
  ~Setting() { *variable_ = std::move(before_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  T* variable_;
  T before_;
};

using ScopeSetting = Setting<std::shared_ptr<Scope>>;

}  // namespace

Rendered Interpreter::Run() {
  scope_ = std::make_shared<Scope>(nullptr);
  RunBlock(tree_.body);
  scope_->Clear();
  if (machine_.looked_around()) turns_ = {};
  return {.text = text_.TakeBytes(),
          .generations = std::move(generations_),
          .data = text_.TakeData(),
          .turns = std::move(turns_)};
}

// ---- statements

Interpreter::Flow Interpreter::RunBlock(const Block& block) {
  for (const auto& statement : block) {
    const Flow flow = RunStatement(*statement);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::RunInScope(const Block& block) {
  const ScopeSetting scope(&scope_, std::make_shared<Scope>(scope_));
  return RunBlock(block);
}

Interpreter::Flow Interpreter::RunStatement(const Statement& statement) {
  machine_.Step();
  if (statement.kind == StatementKind::kText) {
    CountOutput(statement.text.size(), statement.text.size());
    out_->Add(statement.text, /*is_data=*/false);
    return Flow::kNormal;
  }
  machine_.set_line(statement.line);
  const Machine::Level level(machine_);
  switch (statement.kind) {
    case StatementKind::kPrint:
      for (const ExpressionPtr& part : statement.parts) Print(Evaluate(*part));
      return Flow::kNormal;
    case StatementKind::kFor:
      return RunFor(statement);
    case StatementKind::kIf:
      return RunIf(statement);
    case StatementKind::kSet:
      Assign(*statement.parts[0], Evaluate(*statement.parts[1]));
      return Flow::kNormal;
    case StatementKind::kSetBlock:
      return RunSetBlock(statement);
    case StatementKind::kWith:
      return RunWith(statement);
    case StatementKind::kMacro:
      scope_->Set(statement.id, MakeMacro(statement));
      return Flow::kNormal;
    case StatementKind::kCall:
      RunCallBlock(statement);
      return Flow::kNormal;
    case StatementKind::kFilterBlock:
      return RunFilterBlock(statement);
    case StatementKind::kGeneration:
      return RunGeneration(statement);
    case StatementKind::kBreak:
      return Flow::kBreak;
    default:
      return Flow::kContinue;
  }
}

Interpreter::Flow Interpreter::RunIf(const Statement& statement) {
  for (size_t i = 0; i < statement.parts.size(); ++i) {
    if (Evaluate(*statement.parts[i]).Truth()) return RunBlock(statement.bodies[i]);
  }
  return statement.bodies.size() > statement.parts.size() ? RunBlock(statement.bodies.back()) : Flow::kNormal;
}

Interpreter::Flow Interpreter::RunFor(const Statement& statement) {
  const Value sequence = Evaluate(*statement.parts[1]);
  if (&statement == tree_.turn_loop) return RunTurnLoop(statement, sequence);
  if (!statement.recursive) return RunLoop(statement, sequence, 0);
  TracedText text;
  {
    const Setting<TracedText*> out(&out_, &text);
    RunLoop(statement, sequence, 0);
  }
  Write(text);
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::RunTurnLoop(const Statement& statement, const Value& sequence) {
  const Value& messages = Global(tree_.messages_id);
  const bool are_lists = sequence.is(Kind::kList) && messages.is(Kind::kList);
  if (!are_lists || sequence.items().size() > messages.items().size()) {
    machine_.NoteLookAround();
    return RunLoop(statement, sequence, 0);
  }
  // It goes over the messages behind the first few, and over nothing else.
  const size_t left_out = messages.items().size() - sequence.items().size();
  const auto same = [](const Value& a, const Value& b) { return a.is(Kind::kDict) && Same(a, b); };
  if (!std::equal(sequence.items().begin(), sequence.items().end(),
                  messages.items().begin() + static_cast<std::ptrdiff_t>(left_out), same)) {
    machine_.NoteLookAround();
  }
  {
    const Setting<bool> in_turn_loop(&in_turn_loop_, true);
    RunLoop(statement, sequence, 0);
  }
  turns_.begins.push_back(text_.size());
  turns_.first = std::max<uint64_t>(tree_.first_turn_apart, left_out);
  const auto before = std::min<uint64_t>(turns_.first - left_out, turns_.begins.size());
  turns_.begins.erase(turns_.begins.begin(), turns_.begins.begin() + static_cast<std::ptrdiff_t>(before));
  if (turns_.begins.size() < 2) machine_.NoteLookAround();
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::RunLoop(const Statement& statement, const Value& sequence, int64_t depth) {
  const std::shared_ptr<Scope> outer = scope_;
  Loop::Condition condition;
  if (statement.parts[2] != nullptr) {
    condition = [&, outer](const Value& item) {
      const ScopeSetting scope(&scope_, std::make_shared<Scope>(outer));
      Assign(*statement.parts[0], item);
      return Evaluate(*statement.parts[2]).Truth();
    };
  }
  Loop::Recursion recursion;
  if (statement.recursive) {
    recursion = [&, outer](const Value& items, int64_t deeper) {
      const Machine::Level level(machine_);
      const ScopeSetting scope(&scope_, outer);
      TracedText text;
      {
        const Setting<TracedText*> out(&out_, &text);
        RunLoop(statement, items, deeper);
      }
      return machine_.Text(std::move(text));
    };
  }
  const auto loop =
      std::make_shared<Loop>(machine_, sequence, std::move(condition), std::move(recursion), depth);
  loop->set_self(loop);
  bool completed = false;  // Jinja's else is for loops of which no round came to its end
  {
    const ScopeSetting scope(&scope_, std::make_shared<Scope>(outer));
    while (loop->Next()) {
      machine_.Step();
      if (&statement == tree_.turn_loop) turns_.begins.push_back(text_.size());
      if (scope_.use_count() == 1) {
        scope_->Clear();
      } else {
        scope_ = std::make_shared<Scope>(outer);
      }
      Assign(*statement.parts[0], loop->current());
      if (statement.uses_loop) scope_->Set(tree_.loop_id, Value::OfObject(loop));
      const Flow flow = RunBlock(statement.bodies[0]);
      if (flow == Flow::kBreak) {
        if (&statement == tree_.turn_loop) machine_.NoteLookAround();
        break;
      }
      completed |= flow == Flow::kNormal;
    }
  }
  loop->Finish();
  return !completed && statement.bodies.size() > 1 ? RunInScope(statement.bodies[1]) : Flow::kNormal;
}

Interpreter::Flow Interpreter::RunBuffered(const Block& block, TracedText* text) {
  const Setting<TracedText*> out(&out_, text);
  return RunInScope(block);
}

Interpreter::Flow Interpreter::RunSetBlock(const Statement& statement) {
  TracedText text;
  const Flow flow = RunBuffered(statement.bodies[0], &text);
  if (flow != Flow::kNormal) return flow;
  Value value = machine_.Text(std::move(text));
  if (statement.parts[1] != nullptr) {
    block_value_ = value;
    value = Evaluate(*statement.parts[1]);
  }
  Assign(*statement.parts[0], value);
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::RunWith(const Statement& statement) {
  std::vector<Value> values;
  for (size_t i = 1; i < statement.parts.size(); i += 2) values.push_back(Evaluate(*statement.parts[i]));
  const ScopeSetting scope(&scope_, std::make_shared<Scope>(scope_));
  for (size_t i = 0; i < values.size(); ++i) Assign(*statement.parts[2 * i], values[i]);
  return RunBlock(statement.bodies[0]);
}

Interpreter::Flow Interpreter::RunFilterBlock(const Statement& statement) {
  TracedText text;
  const ScopeSetting scope(&scope_, std::make_shared<Scope>(scope_));
  {
    const Setting<TracedText*> out(&out_, &text);
    const Flow flow = RunBlock(statement.bodies[0]);
    if (flow != Flow::kNormal) return flow;
  }
  block_value_ = machine_.Text(std::move(text));
  Print(Evaluate(*statement.parts[0]));
  return Flow::kNormal;
}

void Interpreter::RunCallBlock(const Statement& statement) {
  const Value caller = MakeMacro(statement);
  Print(EvaluateCall(*statement.parts[0], &caller));
}

Interpreter::Flow Interpreter::RunGeneration(const Statement& statement) {
  const uint64_t begin = text_.size();
  RunInScope(statement.bodies[0]);
  generations_.push_back({begin, text_.size()});
  return Flow::kNormal;
}

void Interpreter::Print(const Value& value) {
  if (value.is_string()) {
    Write(value.traced());
  } else if (!value.is_undefined()) {
    Write(TracedStr(value));
  }
}

void Interpreter::Write(const TracedText& text) {
  CountOutput(text.size(), text.cost());
  out_->Add(text);
}

void Interpreter::CountOutput(size_t bytes, size_t cost) {
  machine_.CheckOutput(out_->size() + bytes);
  // The bytes of the whole text have a limit of their own.
  machine_.Charge(out_ == &text_ ? cost - bytes : cost);
}

void Interpreter::Assign(const Expression& target, const Value& value) {
  if (target.kind == ExpressionKind::kName) {
    scope_->Set(target.id, value);
    return;
  }
  if (target.kind == ExpressionKind::kNamespace) {
    const Value* found = scope_->Find(target.id);
    const Value& held = found != nullptr ? *found : Global(target.id);
    auto* names = held.is(Kind::kObject) ? dynamic_cast<Namespace*>(held.object()) : nullptr;
    if (names == nullptr) throw Problem("cannot assign attribute on non-namespace object");
    if (in_turn_loop_) machine_.NoteLookAround();
    names->Set(target.value.text(), value);
    return;
  }
  if (value.is_undefined() && !target.parts.empty()) throw Problem("an undefined value cannot be unpacked");
  const std::vector<Value> items = ItemsOf(machine_, value);
  if (items.size() != target.parts.size()) {
    throw Problem(std::to_string(target.parts.size()) + " values are to be unpacked, not " +
                  std::to_string(items.size()));
  }
  for (size_t i = 0; i < items.size(); ++i) Assign(*target.parts[i], items[i]);
}

// ---- macros

Value Interpreter::MakeMacro(const Statement& statement) {
  auto macro = std::make_shared<Macro>(*this, statement, scope_);
  machine_.AtEnd([macro] { macro->Release(); });
  return Value::OfObject(std::move(macro));
}

Value Interpreter::CallMacro(const Statement& macro, const std::shared_ptr<Scope>& outer,
                             const Arguments& arguments) {
  const Machine::Level level(machine_);
  const int line = machine_.line();
  TracedText text;
  {
    const ScopeSetting scope(&scope_, std::make_shared<Scope>(outer));
    const Setting<TracedText*> out(&out_, &text);
    SetMacroArguments(macro, arguments);
    RunBlock(macro.bodies[0]);
  }
  machine_.set_line(line);
  return machine_.Text(std::move(text));
}

void Interpreter::SetMacroArguments(const Statement& macro, const Arguments& arguments) {
  const size_t count = macro.parameters.size();
  auto named = arguments.named;
  const auto take = [&](const std::string& name) -> std::optional<Value> {
    const auto it =
        std::find_if(named.begin(), named.end(), [&](const auto& item) { return item.first == name; });
    if (it == named.end()) return std::nullopt;
    Value value = it->second;
    named.erase(it);
    return value;
  };
  std::vector<std::optional<Value>> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = i < arguments.positional.size() ? arguments.positional[i] : take(macro.parameter_names[i]);
  }
  for (size_t i = 0; i < count; ++i) {
    if (values[i].has_value()) scope_->Set(macro.parameters[i], *values[i]);
  }
  if (macro.uses_caller) {
    scope_->Set(tree_.caller_id, take("caller").value_or(Value::Undefined(Value::String("caller"))));
  }
  if (macro.uses_kwargs) {
    Dict dict;
    for (const auto& [name, value] : named) dict.Set(arguments.NameOf(name), value);
    scope_->Set(tree_.kwargs_id, Value::OfDict(std::move(dict)));
  } else if (!named.empty()) {
    throw Problem("the macro takes no keyword argument '" + named[0].first + "'");
  }
  if (macro.uses_varargs) {
    std::vector<Value> more;
    for (size_t i = count; i < arguments.positional.size(); ++i) more.push_back(arguments.positional[i]);
    scope_->Set(tree_.varargs_id, machine_.Sequence(Kind::kTuple, std::move(more)));
  } else if (arguments.positional.size() > count) {
    throw Problem("the macro takes not more than " + std::to_string(count) + " arguments");
  }
  const size_t required = count - macro.defaults.size();
  for (size_t i = 0; i < count; ++i) {
    if (values[i].has_value()) continue;
    scope_->Set(macro.parameters[i], i >= required
                                         ? Evaluate(*macro.defaults[i - required])
                                         : Value::Undefined(Value::String(macro.parameter_names[i])));
  }
}

}  // namespace trainwright::jinja
