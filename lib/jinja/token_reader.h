/// The tokens of a template as its parsers take them, and the tree that they build.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/jinja/lexer.h"
#include "lib/jinja/syntax_tree.h"

namespace trainwright::jinja {

class TokenReader {
 public:
  TokenReader(std::string_view source, const std::string& name) : tokens_(Tokenize(source, name)) {
    tree_.name = name;
  }

 protected:
  // Statements and brackets within each other, and operators of one expression.
  static constexpr uint32_t kMostHeight = 180;

  // Of the bodies around the current token.
  struct Place {
    std::vector<Statement*> loops, macros;
    int breakable = 0;      // loops that break would end
    bool buffered = false;  // what is written is a value first
    bool generation = false;
  };

  class Deeper {
   public:
    explicit Deeper(TokenReader* reader) : reader_(reader) {
      if (++reader_->height_ > kMostHeight) reader_->Fail("too deeply nested");
    }
    ~Deeper() { --reader_->height_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    TokenReader* reader_;
  };

  const Token& Now() const { return tokens_[at_]; }
  const Token& After() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& Next() {
    const Token& token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  [[noreturn]] void Fail(const std::string& problem, int line = 0) const {
    SyntaxError(tree_.name, problem, line > 0 ? line : Now().line);
  }
  static bool IsName(const Token& token, std::string_view text) {
    return token.kind == TokenKind::kName && token.text == text;
  }
  static bool IsSign(const Token& token, std::string_view text) {
    return token.kind == TokenKind::kOperator && token.text == text;
  }
  bool SkipName(std::string_view text) { return IsName(Now(), text) && (Next(), true); }
  bool SkipSign(std::string_view text) { return IsSign(Now(), text) && (Next(), true); }
  void ExpectSign(std::string_view text) {
    if (!SkipSign(text)) Fail("expected '" + std::string(text) + "', found " + Found());
  }
  void ExpectName(std::string_view text) {
    if (!SkipName(text)) Fail("expected '" + std::string(text) + "', found " + Found());
  }
  std::string Found() const {
    switch (Now().kind) {
      case TokenKind::kEnd:
        return "the end of the template";
      case TokenKind::kBlockEnd:
        return "the end of the statement";
      case TokenKind::kVariableEnd:
        return "the end of the print statement";
      case TokenKind::kString:
        return "a string";
      default:
        return "'" + Now().text + "'";
    }
  }
  std::string TakeName() {
    if (Now().kind != TokenKind::kName) Fail("expected a name, found " + Found());
    return Next().text;
  }

  int IdOf(const std::string& name) {
    const auto [it, added] = ids_.emplace(name, static_cast<int>(tree_.names.size()));
    if (added) tree_.names.push_back(name);
    return it->second;
  }

  ExpressionPtr Make(ExpressionKind kind, int line) {
    auto expression = std::make_unique<Expression>();
    expression->kind = kind;
    expression->line = line;
    return expression;
  }

  void Heighten(Expression* expression, const Expression& part) const {
    expression->height = std::max(expression->height, part.height + 1);
    if (expression->height > kMostHeight) Fail("too deeply nested");
  }

  void AddPart(Expression* expression, ExpressionPtr part) {
    if (part != nullptr) {
      Heighten(expression, *part);
    }
    expression->parts.push_back(std::move(part));
  }

  ExpressionPtr MakeBinary(ExpressionKind kind, ExpressionPtr a, ExpressionPtr b, int line) {
    ExpressionPtr expression = Make(kind, line);
    AddPart(expression.get(), std::move(a));
    AddPart(expression.get(), std::move(b));
    return expression;
  }

  Place place_;
  SyntaxTree tree_;

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
  uint32_t height_ = 0;
  std::unordered_map<std::string, int> ids_;
};

}  // namespace trainwright::jinja
