/// Evaluates the expressions of a template.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "lib/jinja/machine.h"
#include "lib/jinja/scope.h"
#include "lib/jinja/syntax_tree.h"
#include "lib/jinja/value.h"

namespace trainwright::jinja {

/// All throw Problem.
class Evaluator {
 public:
  Evaluator(const SyntaxTree& tree, Machine& machine, const nlohmann::ordered_json& variables)
      : tree_(tree), machine_(machine), variables_(variables), globals_(tree.names.size()) {}

 protected:
  Value Evaluate(const Expression& expression);
  /// \param caller what a call block gives to what it calls, or null
  Value EvaluateCall(const Expression& expression, const Value* caller);
  /// A variable of the caller or a function.
  const Value& Global(int id);

  const SyntaxTree& tree_;
  Machine& machine_;
  std::shared_ptr<Scope> scope_;
  Value block_value_;  // what the filters of a block begin with
  bool in_turn_loop_ = false;

 private:
  Value EvaluateOperation(const Expression& expression);
  Value EvaluateName(const Expression& expression);
  Value EvaluateItem(const Expression& expression);
  Value EvaluateCompare(const Expression& expression);
  Value EvaluateConcat(const Expression& expression);
  Value EvaluateFilter(const Expression& expression);
  Value EvaluateTest(const Expression& expression);
  Value EvaluateDict(const Expression& expression);
  std::vector<Value> EvaluateParts(const Expression& expression, size_t from);
  Arguments EvaluateArguments(const Expression& expression);

  const nlohmann::ordered_json& variables_;
  std::vector<std::optional<Value>> globals_;
};

}  // namespace trainwright::jinja
