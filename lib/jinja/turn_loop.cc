#include "lib/jinja/turn_loop.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "lib/jinja/globals.h"
#include "lib/jinja/value_tests.h"

namespace trainwright::jinja {
namespace {

constexpr std::string_view kMessages = "messages", kPrompt = "add_generation_prompt";

bool IsConstantInteger(const Expression* expression) {
  return expression != nullptr && expression->kind == ExpressionKind::kConstant &&
         expression->value.is(Kind::kInt);
}

/// Functions that keep nothing from one call to the next, and that templates of chats call.
bool IsPlainFunction(std::string_view name) {
  return name == "namespace" || name == "dict" || name == "raise_exception" || name == "strftime_now";
}

class TurnLoopFinder {
 public:
  explicit TurnLoopFinder(SyntaxTree* tree) : tree_(*tree) {}

  void Run() {
    const int messages = IdOf(kMessages);
    if (messages < 0) return;
    aliases_.push_back(messages);
    prompt_id_ = IdOf(kPrompt);
    const Statement* loop = FindLoop();
    if (loop == nullptr) return;
    CheckTargets(tree_.body);
    if (!sound_) return;
    for (const auto& statement : tree_.body) {
      VisitStatement(statement.get(), statement.get() == loop);
      after_loop_ |= statement.get() == loop;
    }
    tree_.turn_loop = loop;
    tree_.messages_id = messages;
    tree_.first_turn_apart = 1 + static_cast<uint64_t>(left_out_);
  }

 private:
  int IdOf(std::string_view name) const {
    const auto it = std::find(tree_.names.begin(), tree_.names.end(), name);
    return it == tree_.names.end() ? -1 : static_cast<int>(it - tree_.names.begin());
  }
  bool IsAliasId(int id) const { return std::find(aliases_.begin(), aliases_.end(), id) != aliases_.end(); }
  bool IsAlias(const Expression* expression) const {
    return expression != nullptr && expression->kind == ExpressionKind::kName && IsAliasId(expression->id);
  }

  const Statement* FindLoop();
  void FindAliases(const Block& block);
  bool IsRest(const Expression& value, int64_t* begin) const;
  void CheckTarget(const Expression& target);
  void CheckTargets(const Block& block);
  void VisitStatement(Statement* statement, bool is_turn_loop);
  void VisitBlock(const Block& block) {
    for (const auto& statement : block) VisitStatement(statement.get(), false);
  }
  void Visit(Expression* expression);
  bool IsHarmless(const Expression& expression, size_t part) const;

  SyntaxTree& tree_;
  std::vector<int> aliases_;                  // names of the messages, or of all but the first few
  std::vector<const Statement*> alias_sets_;  // that give such a name
  int prompt_id_ = -1;
  int64_t left_out_ = 0;  // of the messages, from the first, that an alias may lack at most
  bool sound_ = true, after_loop_ = false;
  int inner_loops_ = 0;  // that the expression is in, whose `loop` is not that of the turns
};

/// Whether it is an alias without its first items.
bool TurnLoopFinder::IsRest(const Expression& value, int64_t* begin) const {
  if (value.kind != ExpressionKind::kItem || !IsAlias(value.parts[0].get())) return false;
  const Expression& key = *value.parts[1];
  if (key.kind != ExpressionKind::kSlice || !IsConstantInteger(key.parts[0].get())) return false;
  *begin = key.parts[0]->value.integer();
  return key.parts[1] == nullptr && key.parts[2] == nullptr && *begin >= 0 && *begin < 16;
}

void TurnLoopFinder::FindAliases(const Block& block) {
  for (const auto& statement : block) {
    if (statement->kind == StatementKind::kIf) {
      for (const Block& body : statement->bodies) FindAliases(body);
    }
    if (statement->kind != StatementKind::kSet || statement->parts[0]->kind != ExpressionKind::kName)
      continue;
    int64_t begin = 0;
    if (!IsAlias(statement->parts[1].get()) && !IsRest(*statement->parts[1], &begin)) continue;
    const int id = statement->parts[0]->id;
    sound_ = sound_ && id != tree_.loop_id && id != prompt_id_;
    aliases_.push_back(id);
    alias_sets_.push_back(statement.get());
    left_out_ += begin;
  }
}

const Statement* TurnLoopFinder::FindLoop() {
  FindAliases(tree_.body);
  for (const auto& statement : tree_.body) {
    if (statement->kind != StatementKind::kFor || !IsAlias(statement->parts[1].get())) continue;
    const bool plain = statement->parts[0]->kind == ExpressionKind::kName && statement->parts[2] == nullptr &&
                       !statement->recursive && statement->bodies.size() == 1;
    return plain ? statement.get() : nullptr;
  }
  return nullptr;
}

void TurnLoopFinder::CheckTarget(const Expression& target) {
  if (target.kind == ExpressionKind::kName && IsAliasId(target.id)) sound_ = false;
  if (target.kind == ExpressionKind::kTuple) {
    for (const ExpressionPtr& part : target.parts) CheckTarget(*part);
  }
}

/// A name of the messages must mean nothing else anywhere.
void TurnLoopFinder::CheckTargets(const Block& block) {
  for (const auto& statement : block) {
    switch (statement->kind) {
      case StatementKind::kSet:
        if (std::find(alias_sets_.begin(), alias_sets_.end(), statement.get()) != alias_sets_.end()) break;
        [[fallthrough]];
      case StatementKind::kSetBlock:
      case StatementKind::kFor:
        CheckTarget(*statement->parts[0]);
        break;
      case StatementKind::kWith:
        for (size_t i = 0; i < statement->parts.size(); i += 2) CheckTarget(*statement->parts[i]);
        break;
      default:
        break;
    }
    sound_ = sound_ && !IsAliasId(statement->id) &&
             std::none_of(statement->parameters.begin(), statement->parameters.end(),
                          [this](int id) { return IsAliasId(id); });
    for (const Block& body : statement->bodies) CheckTargets(body);
  }
}

void TurnLoopFinder::VisitStatement(Statement* statement, bool is_turn_loop) {
  const bool is_macro = statement->kind == StatementKind::kMacro || statement->kind == StatementKind::kCall;
  const bool gives_alias = std::find(alias_sets_.begin(), alias_sets_.end(), statement) != alias_sets_.end();
  for (size_t i = 0; i < statement->parts.size(); ++i) {
    if ((is_turn_loop || gives_alias) && i == 1) continue;
    // Whether there are messages is the same for every part of a conversation.
    if (statement->kind == StatementKind::kIf && IsAlias(statement->parts[i].get())) continue;
    Visit(statement->parts[i].get());
  }
  for (const ExpressionPtr& value : statement->defaults) Visit(value.get());
  const int outer_loops = inner_loops_;
  if (is_macro) inner_loops_ = 0;
  for (size_t i = 0; i < statement->bodies.size(); ++i) {
    const bool is_inner =
        statement->kind == StatementKind::kFor && !is_turn_loop && i == 0 && statement->uses_loop;
    inner_loops_ += is_inner ? 1 : 0;
    VisitBlock(statement->bodies[i]);
    inner_loops_ -= is_inner ? 1 : 0;
  }
  inner_loops_ = outer_loops;
}

/// Whether this part, a name, is read there in a way that tells nothing of other turns.
bool TurnLoopFinder::IsHarmless(const Expression& expression, size_t part) const {
  const Expression* name = expression.parts[part].get();
  if (name == nullptr || name->kind != ExpressionKind::kName || part != 0) return false;
  switch (expression.kind) {
    case ExpressionKind::kTest:
      return expression.test == FindTest("defined") && (IsAlias(name) || name->id == prompt_id_);
    case ExpressionKind::kAnd:
    case ExpressionKind::kNot:
      return IsAlias(name);
    case ExpressionKind::kItem:
      return IsAlias(name) && IsConstantInteger(expression.parts[1].get()) &&
             expression.parts[1]->value.integer() == 0;
    case ExpressionKind::kAttribute: {
      const std::string& read = expression.value.text();
      return name->id == tree_.loop_id && inner_loops_ == 0 &&
             (read == "first" || read == "index" || read == "index0");
    }
    default:
      return false;
  }
}

void TurnLoopFinder::Visit(Expression* expression) {
  if (expression == nullptr) return;
  if (expression->kind == ExpressionKind::kName) {
    const std::string& name = tree_.names[static_cast<size_t>(expression->id)];
    Value function;
    expression->looks_around = IsAlias(expression) || (expression->id == prompt_id_ && !after_loop_) ||
                               (expression->id == tree_.loop_id && inner_loops_ == 0) ||
                               (FindGlobal(name, &function) && !IsPlainFunction(name));
    return;
  }
  for (size_t i = 0; i < expression->parts.size(); ++i) {
    if (!IsHarmless(*expression, i)) Visit(expression->parts[i].get());
  }
  for (const auto& [name, value] : expression->named) Visit(value.get());
  Visit(expression->more_positional.get());
  Visit(expression->more_named.get());
}

}  // namespace

void FindTurnLoop(SyntaxTree* tree) {
  TurnLoopFinder(tree).Run();
}

}  // namespace trainwright::jinja
