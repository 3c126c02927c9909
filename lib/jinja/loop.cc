#include "lib/jinja/loop.h"

#include "lib/jinja/arguments.h"
#include "lib/jinja/operators.h"

namespace trainwright::jinja {

/// loop.cycle or loop.changed.
class LoopMethod final : public Object {
 public:
  LoopMethod(std::shared_ptr<Loop> loop, bool cycles) : loop_(std::move(loop)), cycles_(cycles) {}
  std::string Repr() const override { throw Problem("a method was printed: Python writes its address"); }
  bool IsCallable() const override { return true; }
  Value Call(Machine& machine, Arguments& arguments) override {
    if (!arguments.named.empty()) throw Problem("the method of a loop takes no named arguments");
    auto& given = arguments.positional;
    if (cycles_) {
      if (given.empty()) throw Problem("no items for cycling given");
      return given[static_cast<size_t>(loop_->index0_) % given.size()];
    }
    const Value value = machine.Sequence(Kind::kTuple, given);
    const bool changed = !loop_->changed_.has_value() || !Equal(machine, *loop_->changed_, value);
    if (!loop_->finished_) loop_->changed_ = value;
    return Value::Bool(changed);
  }

 private:
  std::shared_ptr<Loop> loop_;
  bool cycles_;
};

Loop::Loop(Machine& machine, const Value& sequence, Condition condition, Recursion recursion, int64_t depth)
    : items_(ItemsOf(machine, sequence)),
      condition_(std::move(condition)),
      recursion_(std::move(recursion)),
      depth_(depth) {}

bool Loop::Draw(Value* out) {
  while (at_ < items_.size()) {
    const size_t at = at_++;
    if (condition_ && !condition_(items_[at])) continue;
    *out = items_[at];
    return true;
  }
  return false;
}

bool Loop::Next() {
  Value next;
  if (after_.has_value()) {
    next = std::move(*after_);
    after_.reset();
  } else if (!Draw(&next)) {
    return false;
  }
  ++index0_;
  before_ = std::move(current_);
  current_ = std::move(next);
  return true;
}

bool Loop::Peek() {
  if (after_.has_value()) return true;
  Value next;
  if (!Draw(&next)) return false;
  after_ = std::move(next);
  return true;
}

int64_t Loop::Length() {
  if (length_.has_value()) return *length_;
  if (!condition_) {
    length_ = static_cast<int64_t>(items_.size());
    return *length_;
  }
  std::vector<Value> left;
  Value next;
  while (Draw(&next)) left.push_back(std::move(next));
  length_ = static_cast<int64_t>(left.size()) + index() + (after_.has_value() ? 1 : 0);
  items_ = std::move(left);
  at_ = 0;
  condition_ = nullptr;
  return *length_;
}

void Loop::Finish() {
  finished_ = true;
  changed_.reset();
  recursion_ = nullptr;
  condition_ = nullptr;
}

std::string Loop::Repr() const {
  throw Problem("printing a loop is not supported");
}

bool Loop::GetAttribute(Machine&, std::string_view name, Value* out) {
  if (name == "index") {
    *out = Value::Int(index());
  } else if (name == "index0") {
    *out = Value::Int(index0_);
  } else if (name == "first") {
    *out = Value::Bool(index0_ == 0);
  } else if (name == "last") {
    *out = Value::Bool(!Peek());
  } else if (name == "length") {
    *out = Value::Int(Length());
  } else if (name == "revindex") {
    *out = Value::Int(Length() - index0_);
  } else if (name == "revindex0") {
    *out = Value::Int(Length() - index());
  } else if (name == "depth") {
    *out = Value::Int(depth_ + 1);
  } else if (name == "depth0") {
    *out = Value::Int(depth_);
  } else if (name == "previtem") {
    *out = index0_ == 0 ? Value() : before_;
  } else if (name == "nextitem") {
    *out = Peek() ? *after_ : Value();
  } else if (name == "cycle" || name == "changed") {
    *out = Value::OfObject(std::make_shared<LoopMethod>(self_.lock(), name == "cycle"));
  } else {
    return false;
  }
  return true;
}

Value Loop::Call(Machine&, Arguments& arguments) {
  const Parameters given("loop", arguments, {"iterable"}, 1);
  if (!recursion_) throw Problem("The loop must have the 'recursive' marker to be called recursively.");
  return recursion_(given[0], depth_ + 1);
}

}  // namespace trainwright::jinja
