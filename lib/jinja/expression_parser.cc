#include "lib/jinja/expression_parser.h"

#include "lib/jinja/filters.h"
#include "lib/jinja/operators.h"
#include "lib/jinja/value_tests.h"

namespace trainwright::jinja {

ExpressionPtr ExpressionParser::ParseTuple(bool with_condition, std::string_view end, bool parenthesized) {
  const Deeper deeper(this);
  const int line = Now().line;
  std::vector<ExpressionPtr> parts;
  bool is_tuple = false;
  for (;;) {
    if (!parts.empty()) ExpectSign(",");
    if (Now().kind == TokenKind::kBlockEnd || Now().kind == TokenKind::kVariableEnd || IsSign(Now(), ")") ||
        (!end.empty() && IsName(Now(), end))) {
      break;
    }
    parts.push_back(ParseExpression(with_condition));
    if (!IsSign(Now(), ",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !parts.empty()) return std::move(parts[0]);
  if (!is_tuple && !parenthesized) Fail("expected an expression, found " + Found());
  ExpressionPtr tuple = Make(ExpressionKind::kTuple, line);
  for (ExpressionPtr& part : parts) AddPart(tuple.get(), std::move(part));
  return tuple;
}

ExpressionPtr ExpressionParser::ParseExpression(bool with_condition) {
  const Deeper deeper(this);
  if (!with_condition) return ParseOr();
  ExpressionPtr value = ParseOr();
  while (IsName(Now(), "if")) {
    ExpressionPtr condition = Make(ExpressionKind::kCondition, Next().line);
    AddPart(condition.get(), ParseOr());
    AddPart(condition.get(), std::move(value));
    AddPart(condition.get(), SkipName("else") ? ParseExpression() : nullptr);
    value = std::move(condition);
  }
  return value;
}

ExpressionPtr ExpressionParser::ParseOr() {
  ExpressionPtr left = ParseAnd();
  while (IsName(Now(), "or")) {
    const int line = Next().line;
    left = MakeBinary(ExpressionKind::kOr, std::move(left), ParseAnd(), line);
  }
  return left;
}

ExpressionPtr ExpressionParser::ParseAnd() {
  ExpressionPtr left = ParseNot();
  while (IsName(Now(), "and")) {
    const int line = Next().line;
    left = MakeBinary(ExpressionKind::kAnd, std::move(left), ParseNot(), line);
  }
  return left;
}

ExpressionPtr ExpressionParser::ParseNot() {
  if (!IsName(Now(), "not")) return ParseCompare();
  const Deeper deeper(this);
  ExpressionPtr expression = Make(ExpressionKind::kNot, Next().line);
  AddPart(expression.get(), ParseNot());
  return expression;
}

ExpressionPtr ExpressionParser::ParseCompare() {
  ExpressionPtr first = ParseSum();
  ExpressionPtr compare;
  for (;;) {
    std::string sign;
    if (Now().kind == TokenKind::kOperator) {
      for (const std::string_view one : {"==", "!=", "<", "<=", ">", ">="}) {
        if (Now().text == one) sign = one;
      }
    } else if (IsName(Now(), "in")) {
      sign = "in";
    } else if (IsName(Now(), "not") && IsName(After(), "in")) {
      sign = "not in";
      Next();
    }
    if (sign.empty()) return compare == nullptr ? std::move(first) : std::move(compare);
    const int line = Next().line;
    if (compare == nullptr) {
      compare = Make(ExpressionKind::kCompare, line);
      AddPart(compare.get(), std::move(first));
    }
    AddPart(compare.get(), ParseSum());
    compare->signs.push_back(sign);
  }
}

ExpressionPtr ExpressionParser::ParseSum() {
  ExpressionPtr left = ParseConcat();
  while (IsSign(Now(), "+") || IsSign(Now(), "-")) {
    const Token& sign = Next();
    const BinaryFunction function = BinaryOf(sign.text);
    left = MakeBinary(ExpressionKind::kBinary, std::move(left), ParseConcat(), sign.line);
    left->binary = function;
  }
  return left;
}

ExpressionPtr ExpressionParser::ParseConcat() {
  ExpressionPtr first = ParseProduct();
  if (!IsSign(Now(), "~")) return first;
  ExpressionPtr concat = Make(ExpressionKind::kConcat, Now().line);
  AddPart(concat.get(), std::move(first));
  while (SkipSign("~")) AddPart(concat.get(), ParseProduct());
  return concat;
}

ExpressionPtr ExpressionParser::ParseProduct() {
  ExpressionPtr left = ParsePower();
  while (IsSign(Now(), "*") || IsSign(Now(), "/") || IsSign(Now(), "//") || IsSign(Now(), "%")) {
    const Token& sign = Next();
    const BinaryFunction function = BinaryOf(sign.text);
    left = MakeBinary(ExpressionKind::kBinary, std::move(left), ParsePower(), sign.line);
    left->binary = function;
  }
  return left;
}

ExpressionPtr ExpressionParser::ParsePower() {
  ExpressionPtr left = ParseUnary(true);
  while (IsSign(Now(), "**")) {
    const int line = Next().line;
    left = MakeBinary(ExpressionKind::kBinary, std::move(left), ParseUnary(true), line);
    left->binary = BinaryOf("**");
  }
  return left;
}

ExpressionPtr ExpressionParser::ParseUnary(bool with_filter) {
  ExpressionPtr value;
  if (IsSign(Now(), "-") || IsSign(Now(), "+")) {
    const Deeper deeper(this);
    const Token& sign = Next();
    value = Make(sign.text == "-" ? ExpressionKind::kNegative : ExpressionKind::kPositive, sign.line);
    AddPart(value.get(), ParseUnary(false));
  } else {
    value = ParsePrimary(false);
  }
  value = ParsePostfix(std::move(value));
  return with_filter ? ParseFilters(std::move(value)) : std::move(value);
}

ExpressionPtr ExpressionParser::ParsePrimary(bool with_namespace) {
  const Token& token = Now();
  ExpressionPtr constant = Make(ExpressionKind::kConstant, token.line);
  switch (token.kind) {
    case TokenKind::kName:
      return ParseName(with_namespace);
    case TokenKind::kString: {
      std::string text;
      while (Now().kind == TokenKind::kString) text += Next().text;
      constant->value = Value::String(std::move(text));
      return constant;
    }
    case TokenKind::kInteger:
      constant->value = Value::Int(Next().integer);
      return constant;
    case TokenKind::kFloat:
      constant->value = Value::Float(Next().number);
      return constant;
    default:
      break;
  }
  if (SkipSign("(")) {
    ExpressionPtr value = ParseTuple(true, "", true);
    ExpectSign(")");
    return value;
  }
  if (IsSign(token, "[")) return ParseList();
  if (IsSign(token, "{")) return ParseDict();
  Fail("unexpected " + Found());
}

ExpressionPtr ExpressionParser::ParseName(bool with_namespace) {
  const Token& token = Next();
  ExpressionPtr expression = Make(ExpressionKind::kConstant, token.line);
  const std::string& name = token.text;
  if (name == "true" || name == "True" || name == "false" || name == "False") {
    expression->value = Value::Bool(name == "true" || name == "True");
    return expression;
  }
  if (name == "none" || name == "None") {
    expression->value = Value::None();
    return expression;
  }
  expression->kind = ExpressionKind::kName;
  expression->id = IdOf(name);
  expression->value = Value::String(name);
  if (with_namespace && SkipSign(".")) {
    expression->kind = ExpressionKind::kNamespace;
    expression->value = Value::String(TakeName());
    return expression;
  }
  if (name == "self") Fail("the name 'self' is not supported", token.line);
  if (name == "loop") {
    for (Statement* loop : place_.loops) loop->uses_loop = true;
  }
  for (Statement* macro : place_.macros) {
    macro->uses_caller |= name == "caller";
    macro->uses_kwargs |= name == "kwargs";
    macro->uses_varargs |= name == "varargs";
  }
  tree_.uses_time |= name == "strftime_now";
  return expression;
}

ExpressionPtr ExpressionParser::ParseList() {
  ExpressionPtr list = Make(ExpressionKind::kList, Next().line);
  while (!IsSign(Now(), "]")) {
    if (!list->parts.empty()) ExpectSign(",");
    if (IsSign(Now(), "]")) break;
    AddPart(list.get(), ParseExpression());
  }
  ExpectSign("]");
  return list;
}

ExpressionPtr ExpressionParser::ParseDict() {
  ExpressionPtr dict = Make(ExpressionKind::kDict, Next().line);
  while (!IsSign(Now(), "}")) {
    if (!dict->parts.empty()) ExpectSign(",");
    if (IsSign(Now(), "}")) break;
    AddPart(dict.get(), ParseExpression());
    ExpectSign(":");
    AddPart(dict.get(), ParseExpression());
  }
  ExpectSign("}");
  return dict;
}

ExpressionPtr ExpressionParser::ParsePostfix(ExpressionPtr value) {
  for (;;) {
    if (IsSign(Now(), ".") || IsSign(Now(), "[")) {
      value = ParseAccess(std::move(value));
    } else if (IsSign(Now(), "(")) {
      ExpressionPtr call = Make(ExpressionKind::kCall, Now().line);
      AddPart(call.get(), std::move(value));
      ParseArguments(call.get());
      value = std::move(call);
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::ParseFilters(ExpressionPtr value) {
  for (;;) {
    if (SkipSign("|")) {
      value = ParseFilter(std::move(value));
    } else if (IsName(Now(), "is")) {
      value = ParseTest(std::move(value));
    } else if (IsSign(Now(), "(")) {
      ExpressionPtr call = Make(ExpressionKind::kCall, Now().line);
      AddPart(call.get(), std::move(value));
      ParseArguments(call.get());
      value = std::move(call);
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::ParseFilter(ExpressionPtr value) {
  ExpressionPtr filter = Make(ExpressionKind::kFilter, Now().line);
  std::string name = TakeName();
  while (SkipSign(".")) name += "." + TakeName();
  filter->filter = FindFilter(name);
  if (filter->filter == nullptr)
    Fail("the filter '" + name + "' is not known or not supported", filter->line);
  filter->value = Value::String(name);
  AddPart(filter.get(), std::move(value));
  if (IsSign(Now(), "(")) ParseArguments(filter.get());
  return filter;
}

ExpressionPtr ExpressionParser::ParseTest(ExpressionPtr value) {
  ExpressionPtr test = Make(ExpressionKind::kTest, Next().line);
  const bool negated = SkipName("not");
  std::string name = TakeName();
  while (SkipSign(".")) name += "." + TakeName();
  test->test = FindTest(name);
  if (test->test == nullptr) Fail("the test '" + name + "' is not known or not supported", test->line);
  AddPart(test.get(), std::move(value));
  const Token& token = Now();
  if (IsSign(token, "(")) {
    ParseArguments(test.get());
  } else if ((token.kind == TokenKind::kName && token.text != "else" && token.text != "or" &&
              token.text != "and") ||
             token.kind == TokenKind::kString || token.kind == TokenKind::kInteger ||
             token.kind == TokenKind::kFloat || IsSign(token, "[") || IsSign(token, "{")) {
    if (IsName(token, "is")) Fail("tests cannot be chained with is");
    const Deeper deeper(this);
    AddPart(test.get(), ParsePostfix(ParsePrimary(false)));
  }
  if (!negated) return test;
  ExpressionPtr inverse = Make(ExpressionKind::kNot, test->line);
  AddPart(inverse.get(), std::move(test));
  return inverse;
}

ExpressionPtr ExpressionParser::ParseAccess(ExpressionPtr value) {
  const Token& sign = Next();
  ExpressionPtr access = Make(ExpressionKind::kItem, sign.line);
  AddPart(access.get(), std::move(value));
  if (sign.text == ".") {
    if (Now().kind == TokenKind::kName) {
      access->kind = ExpressionKind::kAttribute;
      access->value = Value::String(Next().text);
    } else if (Now().kind == TokenKind::kInteger) {
      AddPart(access.get(), ParsePrimary(false));
    } else {
      Fail("expected a name or a number, found " + Found());
    }
    return access;
  }
  std::vector<ExpressionPtr> keys;
  while (!IsSign(Now(), "]")) {
    if (!keys.empty()) ExpectSign(",");
    keys.push_back(ParseSubscript());
  }
  ExpectSign("]");
  if (keys.size() == 1) {
    AddPart(access.get(), std::move(keys[0]));
    return access;
  }
  ExpressionPtr tuple = Make(ExpressionKind::kTuple, sign.line);
  for (ExpressionPtr& key : keys) {
    if (key->kind == ExpressionKind::kSlice) Fail("several slices in one subscript are not supported");
    AddPart(tuple.get(), std::move(key));
  }
  AddPart(access.get(), std::move(tuple));
  return access;
}

ExpressionPtr ExpressionParser::ParseSubscript() {
  ExpressionPtr slice = Make(ExpressionKind::kSlice, Now().line);
  const auto at_end = [this] { return IsSign(Now(), "]") || IsSign(Now(), ",") || IsSign(Now(), ":"); };
  ExpressionPtr begin = IsSign(Now(), ":") ? nullptr : ParseExpression();
  if (begin != nullptr && !IsSign(Now(), ":")) return begin;
  Next();
  AddPart(slice.get(), std::move(begin));
  AddPart(slice.get(), at_end() ? nullptr : ParseExpression());
  AddPart(slice.get(), SkipSign(":") && !at_end() ? ParseExpression() : nullptr);
  return slice;
}

void ExpressionParser::ParseArguments(Expression* call) {
  const Deeper deeper(this);
  ExpectSign("(");
  bool first = true;
  while (!IsSign(Now(), ")")) {
    if (!first) {
      ExpectSign(",");
      if (IsSign(Now(), ")")) break;
    }
    first = false;
    if (SkipSign("*")) {
      if (call->more_positional != nullptr || call->more_named != nullptr)
        Fail("invalid arguments of a call");
      call->more_positional = ParseExpression();
      Heighten(call, *call->more_positional);
    } else if (SkipSign("**")) {
      if (call->more_named != nullptr) Fail("invalid arguments of a call");
      call->more_named = ParseExpression();
      Heighten(call, *call->more_named);
    } else if (Now().kind == TokenKind::kName && IsSign(After(), "=")) {
      if (call->more_named != nullptr) Fail("invalid arguments of a call");
      std::string name = Next().text;
      Next();
      for (const auto& other : call->named) {
        if (other.first == name) Fail("the argument '" + name + "' is there twice");
      }
      call->named.emplace_back(std::move(name), ParseExpression());
      Heighten(call, *call->named.back().second);
    } else {
      if (call->more_positional != nullptr || call->more_named != nullptr || !call->named.empty()) {
        Fail("invalid arguments of a call");
      }
      AddPart(call, ParseExpression());
    }
  }
  ExpectSign(")");
}

}  // namespace trainwright::jinja
