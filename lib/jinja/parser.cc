#include "lib/jinja/parser.h"

#include <algorithm>
#include <initializer_list>
#include <unordered_map>

#include "lib/jinja/expression_parser.h"
#include "lib/jinja/turn_loop.h"

namespace trainwright::jinja {
namespace {

class StatementParser final : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  SyntaxTree Run() {
    tree_.loop_id = IdOf("loop");
    tree_.caller_id = IdOf("caller");
    tree_.kwargs_id = IdOf("kwargs");
    tree_.varargs_id = IdOf("varargs");
    tree_.body = ParseBlock({});
    FindTurnLoop(&tree_);
    return std::move(tree_);
  }

 private:
  using Words = std::initializer_list<std::string_view>;

  Block ParseBlock(Words ends);
  Block ParseBody(Words ends);
  std::unique_ptr<Statement> ParseStatement();
  void ParseFor(Statement* statement);
  void ParseIf(Statement* statement);
  void ParseSet(Statement* statement);
  void ParseWith(Statement* statement);
  void ParseSignature(Statement* statement);
  void ParseMacroBody(Statement* statement, std::string_view end);
  void ParseMacro(Statement* statement);
  void ParseCallBlock(Statement* statement);
  void ParseFilterBlock(Statement* statement);
  void ParseGeneration(Statement* statement);
  void ParsePrint(Statement* statement);
  void ParseJump(Statement* statement);
  ExpressionPtr ParseTarget(std::string_view end, bool with_namespace);
  void CheckTarget(const Expression& target, bool of_loop);
};

Block StatementParser::ParseBlock(Words ends) {
  const Deeper deeper(this);
  Block block;
  for (;;) {
    const Token& token = Now();
    auto statement = std::make_unique<Statement>();
    statement->line = token.line;
    if (token.kind == TokenKind::kEnd) {
      if (ends.size() > 0)
        Fail("the template ends where a block is open: expected " + std::string(*ends.begin()));
      return block;
    }
    if (token.kind == TokenKind::kData) {
      statement->text = Next().text;
      block.push_back(std::move(statement));
    } else if (token.kind == TokenKind::kVariableBegin) {
      Next();
      statement->kind = StatementKind::kPrint;
      statement->parts.push_back(ParseTuple(true, "", false));
      if (Now().kind != TokenKind::kVariableEnd)
        Fail("expected the end of the print statement, found " + Found());
      Next();
      block.push_back(std::move(statement));
    } else {
      Next();
      for (const std::string_view end : ends) {
        if (IsName(Now(), end)) return block;
      }
      block.push_back(ParseStatement());
      if (Now().kind != TokenKind::kBlockEnd) Fail("expected the end of the statement, found " + Found());
      Next();
    }
  }
}

Block StatementParser::ParseBody(Words ends) {
  SkipSign(":");
  if (Now().kind != TokenKind::kBlockEnd) Fail("expected the end of the statement, found " + Found());
  Next();
  return ParseBlock(ends);
}

std::unique_ptr<Statement> StatementParser::ParseStatement() {
  using Member = void (StatementParser::*)(Statement*);
  static const std::unordered_map<std::string_view, std::pair<StatementKind, Member>> kStatements = {
      {"for", {StatementKind::kFor, &StatementParser::ParseFor}},
      {"if", {StatementKind::kIf, &StatementParser::ParseIf}},
      {"set", {StatementKind::kSet, &StatementParser::ParseSet}},
      {"with", {StatementKind::kWith, &StatementParser::ParseWith}},
      {"macro", {StatementKind::kMacro, &StatementParser::ParseMacro}},
      {"call", {StatementKind::kCall, &StatementParser::ParseCallBlock}},
      {"filter", {StatementKind::kFilterBlock, &StatementParser::ParseFilterBlock}},
      {"generation", {StatementKind::kGeneration, &StatementParser::ParseGeneration}},
      {"print", {StatementKind::kPrint, &StatementParser::ParsePrint}},
      {"break", {StatementKind::kBreak, &StatementParser::ParseJump}},
      {"continue", {StatementKind::kContinue, &StatementParser::ParseJump}},
  };
  if (Now().kind != TokenKind::kName) Fail("expected the name of a statement, found " + Found());
  const auto it = kStatements.find(Now().text);
  if (it == kStatements.end()) Fail("the statement '" + Now().text + "' is not known or not supported");
  auto statement = std::make_unique<Statement>();
  statement->line = Next().line;
  statement->kind = it->second.first;
  (this->*it->second.second)(statement.get());
  return statement;
}

void StatementParser::ParseFor(Statement* statement) {
  statement->parts.push_back(ParseTarget("in", false));
  CheckTarget(*statement->parts[0], true);
  ExpectName("in");
  statement->parts.push_back(ParseTuple(false, "recursive", false));
  statement->parts.push_back(SkipName("if") ? ParseExpression() : nullptr);
  statement->recursive = SkipName("recursive");
  statement->uses_loop = statement->recursive;
  const Place outer = place_;
  place_.loops.push_back(statement);
  ++place_.breakable;
  place_.buffered |= statement->recursive;
  statement->bodies.push_back(ParseBody({"endfor", "else"}));
  place_.loops = outer.loops;
  place_.breakable = outer.breakable;
  if (Next().text == "else") {
    statement->bodies.push_back(ParseBody({"endfor"}));
    Next();
  }
  place_ = outer;
}

void StatementParser::ParseIf(Statement* statement) {
  for (;;) {
    statement->parts.push_back(ParseTuple(false, "", false));
    statement->bodies.push_back(ParseBody({"elif", "else", "endif"}));
    const std::string end = Next().text;
    if (end == "elif") continue;
    if (end == "else") {
      statement->bodies.push_back(ParseBody({"endif"}));
      Next();
    }
    return;
  }
}

void StatementParser::ParseSet(Statement* statement) {
  statement->parts.push_back(ParseTarget("", true));
  if (SkipSign("=")) {
    statement->parts.push_back(ParseTuple(true, "", false));
    return;
  }
  statement->kind = StatementKind::kSetBlock;
  ExpressionPtr filters;
  while (SkipSign("|")) filters = ParseFilter(std::move(filters));
  statement->parts.push_back(std::move(filters));
  const bool buffered = std::exchange(place_.buffered, true);
  statement->bodies.push_back(ParseBody({"endset"}));
  place_.buffered = buffered;
  Next();
}

void StatementParser::ParseWith(Statement* statement) {
  while (Now().kind != TokenKind::kBlockEnd && !IsSign(Now(), ":")) {
    if (!statement->parts.empty()) ExpectSign(",");
    statement->parts.push_back(ParseTarget("", false));
    ExpectSign("=");
    statement->parts.push_back(ParseExpression());
  }
  statement->bodies.push_back(ParseBody({"endwith"}));
  Next();
}

void StatementParser::ParseSignature(Statement* statement) {
  ExpectSign("(");
  while (!IsSign(Now(), ")")) {
    if (!statement->parameters.empty()) ExpectSign(",");
    const std::string name = TakeName();
    for (const std::string& other : statement->parameter_names) {
      if (other == name) Fail("the parameter '" + name + "' is there twice");
    }
    if (SkipSign("=")) {
      statement->defaults.push_back(ParseExpression());
    } else if (!statement->defaults.empty()) {
      Fail("a parameter without a default follows one that has it");
    }
    statement->parameters.push_back(IdOf(name));
    statement->parameter_names.push_back(name);
  }
  ExpectSign(")");
}

void StatementParser::ParseMacroBody(Statement* statement, std::string_view end) {
  const Place outer = place_;
  place_.macros.push_back(statement);
  place_.breakable = 0;
  place_.buffered = true;
  statement->bodies.push_back(ParseBody({end}));
  place_ = outer;
  Next();
  const auto& names = statement->parameter_names;
  const auto has = [&](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (statement->uses_caller && has("caller")) {
    const auto index = static_cast<size_t>(std::find(names.begin(), names.end(), "caller") - names.begin());
    if (index + statement->defaults.size() < names.size()) {
      Fail("the parameter 'caller' must have a default", statement->line);
    }
    statement->uses_caller = false;
  }
  statement->uses_kwargs = statement->uses_kwargs && !has("kwargs");
  statement->uses_varargs = statement->uses_varargs && !has("varargs");
}

void StatementParser::ParseMacro(Statement* statement) {
  const std::string name = TakeName();
  statement->id = IdOf(name);
  statement->value = Value::String(name);
  ParseSignature(statement);
  ParseMacroBody(statement, "endmacro");
}

void StatementParser::ParseCallBlock(Statement* statement) {
  if (IsSign(Now(), "(")) ParseSignature(statement);
  statement->parts.push_back(ParseExpression());
  if (statement->parts[0]->kind != ExpressionKind::kCall) Fail("expected a call", statement->line);
  statement->value = Value::None();
  ParseMacroBody(statement, "endcall");
}

void StatementParser::ParseFilterBlock(Statement* statement) {
  ExpressionPtr filters = ParseFilter(nullptr);
  while (SkipSign("|")) filters = ParseFilter(std::move(filters));
  statement->parts.push_back(std::move(filters));
  const bool buffered = std::exchange(place_.buffered, true);
  statement->bodies.push_back(ParseBody({"endfilter"}));
  place_.buffered = buffered;
  Next();
}

void StatementParser::ParseGeneration(Statement* statement) {
  if (place_.generation) Fail("a generation block within another is not supported", statement->line);
  if (place_.buffered) {
    Fail("a generation block within a macro, call, filter, recursive loop or set block is not supported",
         statement->line);
  }
  tree_.has_generation = true;
  const Place outer = place_;
  place_.generation = true;
  place_.breakable = 0;  // it is a macro to Jinja, and no jump leads out of it
  statement->bodies.push_back(ParseBody({"endgeneration"}));
  place_ = outer;
  Next();
}

void StatementParser::ParsePrint(Statement* statement) {
  while (Now().kind != TokenKind::kBlockEnd) {
    if (!statement->parts.empty()) ExpectSign(",");
    statement->parts.push_back(ParseExpression());
  }
}

void StatementParser::ParseJump(Statement* statement) {
  if (place_.breakable == 0) Fail("a jump is outside of a loop", statement->line);
}

ExpressionPtr StatementParser::ParseTarget(std::string_view end, bool with_namespace) {
  const int line = Now().line;
  std::vector<ExpressionPtr> targets;
  bool is_tuple = false;
  const auto at_end = [&] {
    return Now().kind == TokenKind::kBlockEnd || Now().kind == TokenKind::kVariableEnd ||
           IsSign(Now(), ")") || (!end.empty() && IsName(Now(), end));
  };
  for (;;) {
    if (!targets.empty()) ExpectSign(",");
    if (at_end()) break;
    targets.push_back(ParsePrimary(with_namespace));
    if (!IsSign(Now(), ",")) break;
    is_tuple = true;
  }
  if (!is_tuple && targets.empty()) Fail("expected what to assign to, found " + Found());
  ExpressionPtr target;
  if (is_tuple) {
    target = Make(ExpressionKind::kTuple, line);
    for (ExpressionPtr& part : targets) AddPart(target.get(), std::move(part));
  } else {
    target = std::move(targets[0]);
  }
  CheckTarget(*target, false);
  return target;
}

void StatementParser::CheckTarget(const Expression& target, bool of_loop) {
  if (target.kind == ExpressionKind::kTuple) {
    for (const ExpressionPtr& part : target.parts) CheckTarget(*part, of_loop);
  } else if (target.kind == ExpressionKind::kName) {
    if (target.id == tree_.loop_id && (of_loop || !place_.loops.empty()))
      Fail("'loop' is no name to assign to");
  } else if (target.kind != ExpressionKind::kNamespace) {
    Fail("it is not possible to assign to this", target.line);
  }
}

}  // namespace

SyntaxTree ParseTemplate(std::string_view source, const std::string& name) {
  return StatementParser(source, name).Run();
}

}  // namespace trainwright::jinja
