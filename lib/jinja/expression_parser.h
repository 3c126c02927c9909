/// Parses expressions by the grammar of Jinja 3.1's parser.
#pragma once

#include "lib/jinja/token_reader.h"

namespace trainwright::jinja {

/// All throw Error{kUsage} with the line.
class ExpressionParser : public TokenReader {
 public:
  using TokenReader::TokenReader;

 protected:
  ExpressionPtr ParseTuple(bool with_condition, std::string_view end, bool parenthesized);
  ExpressionPtr ParseExpression(bool with_condition = true);
  ExpressionPtr ParsePrimary(bool with_namespace);
  ExpressionPtr ParseFilter(ExpressionPtr value);

 private:
  ExpressionPtr ParseOr();
  ExpressionPtr ParseAnd();
  ExpressionPtr ParseNot();
  ExpressionPtr ParseCompare();
  ExpressionPtr ParseSum();
  ExpressionPtr ParseConcat();
  ExpressionPtr ParseProduct();
  ExpressionPtr ParsePower();
  ExpressionPtr ParseUnary(bool with_filter);
  ExpressionPtr ParseName(bool with_namespace);
  ExpressionPtr ParseList();
  ExpressionPtr ParseDict();
  ExpressionPtr ParsePostfix(ExpressionPtr value);
  ExpressionPtr ParseFilters(ExpressionPtr value);
  ExpressionPtr ParseTest(ExpressionPtr value);
  ExpressionPtr ParseAccess(ExpressionPtr value);
  ExpressionPtr ParseSubscript();
  void ParseArguments(Expression* call);
};

}  // namespace trainwright::jinja
