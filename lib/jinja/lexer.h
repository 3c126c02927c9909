/// Cuts a template into tokens as Jinja does with trim_blocks and lstrip_blocks.
///
/// Line ends become \n, one at the end of the template goes away, and white space at tags is what Jinja
/// leaves.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainwright::jinja {

enum class TokenKind : uint8_t {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,  ///< with its escapes resolved
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  int line = 1;
  int64_t integer = 0;
  double number = 0;
};

/// \throws Error{kUsage} with the line
std::vector<Token> Tokenize(std::string_view source, const std::string& name);

/// An error of a template's text.
[[noreturn]] void SyntaxError(const std::string& name, const std::string& problem, int line);

}  // namespace trainwright::jinja
