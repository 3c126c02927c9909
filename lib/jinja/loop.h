/// The variable `loop` of a loop, and the items that the loop goes over.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/jinja/machine.h"
#include "lib/jinja/value.h"

namespace trainwright::jinja {

class Loop final : public Object {
 public:
  /// Whether the loop takes an item, where it has a condition.
  using Condition = std::function<bool(const Value& item)>;
  /// Renders the loop's body for other items: a recursive loop called.
  using Recursion = std::function<Value(const Value& sequence, int64_t depth)>;

  Loop(Machine& machine, const Value& sequence, Condition condition, Recursion recursion, int64_t depth);

  /// \returns whether there was one more item, which is current now
  bool Next();
  const Value& current() const { return current_; }
  /// So that its methods can hold it.
  void set_self(const std::shared_ptr<Loop>& self) { self_ = self; }
  /// Lets go of what may hold the loop itself.
  void Finish();

  std::string Repr() const override;
  bool GetAttribute(Machine& machine, std::string_view name, Value* out) override;
  bool IsCallable() const override { return true; }
  Value Call(Machine& machine, Arguments& arguments) override;

 private:
  friend class LoopMethod;
  bool Draw(Value* out);
  bool Peek();
  int64_t Length();
  int64_t index() const { return index0_ + 1; }

  std::vector<Value> items_;
  size_t at_ = 0;
  Condition condition_;
  Recursion recursion_;
  int64_t depth_, index0_ = -1;
  std::optional<int64_t> length_;
  std::optional<Value> after_, changed_;
  Value current_, before_;
  bool finished_ = false;
  std::weak_ptr<Loop> self_;
};

}  // namespace trainwright::jinja
